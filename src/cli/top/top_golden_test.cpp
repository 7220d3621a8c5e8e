// Pictures of `gpurota top` for simulated machines, compared with the files in testdata/top. With
// GPUROTA_REWRITE_GOLDEN=1 the files are rewritten: check each of them then.
#include "base/text.h"
#include "cli/status/status_samples_test.h"
#include "cli/top/frame.h"
#include "cli/top/keys.h"
#include "cli/top/top_samples_test.h"
#include "testing/effort.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpurota::cli::topview {
namespace {

struct Picture {
  std::string name;
  std::string machine;
  std::size_t width, height;
  State state{};
  bool ascii = false;
  bool live = true;
};

State with(void (*change)(State&)) {
  State state;
  change(state);
  return state;
}

std::vector<Picture> pictures() {
  std::vector<Picture> all;
  for (const auto& sample : samples::all_machines()) {
    all.push_back({sample.name + "-80x24", sample.name, 80, 24});
    all.push_back({sample.name + "-132x40", sample.name, 132, 40});
  }
  all.push_back({"eight-40x10", "eight", 40, 10});
  all.push_back({"eight-300x100", "eight", 300, 100});
  all.push_back({"eight-ascii", "eight", 100, 30, {}, true});
  all.push_back({"eight-once", "eight", 100, 30, {}, false, false});
  all.push_back({"wide-text-ascii", "wide-text", 100, 12, {}, true});
  all.push_back(
      {"eight-tree", "eight", 100, 30, with([](State& s) { s.choice.processes = true; })});
  all.push_back(
      {"eight-filter", "eight", 100, 30, with([](State& s) { s.choice.filter = "CAROL"; })});
  all.push_back({"eight-user", "eight", 100, 30, with([](State& s) { s.choice.user = "gu_bob"; })});
  all.push_back({"eight-help", "eight", 80, 24, with([](State& s) { s.help = true; })});
  all.push_back({"eight-question", "eight", 80, 24, with([](State& s) {
                   s.asking = Asking::kRelease;
                   s.about.lease = LeaseId{10};
                 })});
  const Subject lease = {GpuUuid{"GPU-0"}, LeaseId{4}, {}};
  const Subject gpu = {GpuUuid{"GPU-3"}, {}, {}};
  const Subject request = {{}, {}, RequestId{7}};
  all.push_back({"turns-lease", "turns", 80, 24, State{.chosen = lease, .details = true}});
  all.push_back({"eight-gpu", "eight", 132, 40, State{.chosen = gpu, .details = true}});
  all.push_back({"eight-request", "eight", 80, 24, State{.chosen = request, .details = true}});
  return all;
}

std::string drawn(Picture picture) {
  const Model model = samples::machine(picture.machine);
  if (!picture.state.chosen.is_something()) keep_choice(picture.state, model);
  Grid grid = draw(model, picture.state,
                   {.width = picture.width,
                    .height = picture.height,
                    .now = cli::samples::kNow,
                    .host = "node7",
                    .live = picture.live});
  if (picture.ascii) grid.make_ascii();
  return plain_text(grid);
}

std::string file_named(const std::string& name) {
  return fmt::format("{}/top/{}.txt", GPUROTA_TESTDATA, name);
}

TEST(TopGolden, EachScreenMatchesItsFile) {
  const char* const rewrite = std::getenv("GPUROTA_REWRITE_GOLDEN");
  for (const Picture& picture : pictures()) {
    const std::string now = drawn(picture);
    if (rewrite != nullptr && *rewrite == '1') {
      std::ofstream(file_named(picture.name)) << now;
      continue;
    }
    std::ifstream in(file_named(picture.name));
    std::stringstream file;
    file << in.rdbuf();
    EXPECT_EQ(file.str(), now) << file_named(picture.name)
                               << " differs; GPUROTA_REWRITE_GOLDEN=1 writes it anew";
  }
}

TEST(TopGolden, EachFileBelongsToAScreen) {
  std::set<std::string> files, expected;
  for (const auto& entry : std::filesystem::directory_iterator(GPUROTA_TESTDATA "/top")) {
    files.insert(entry.path().string());
  }
  for (const Picture& picture : pictures()) expected.insert(file_named(picture.name));
  EXPECT_EQ(files, expected);
}

TEST(TopGolden, ScreenFillsTheTerminalAtAnySize) {
  for (const auto& sample : samples::all_machines()) {
    const Model model = samples::machine(sample.name);
    State state;
    keep_choice(state, model);
    for (std::size_t width = 1; width <= 320; width += 320 / testing::effort(30U)) {
      for (const std::size_t height : {1, 2, 3, 5, 24, 100}) {
        for (const bool details : {false, true}) {
          state.details = details;
          const std::string text =
              plain_text(draw(model, state, {.width = width, .height = height, .live = true}));
          EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<long>(height));
          std::istringstream lines(text);
          for (std::string line; std::getline(lines, line);) {
            ASSERT_LE(display_width(line), width) << sample.name << ": " << line;
          }
        }
      }
    }
  }
}

TEST(TopGolden, TextOfOthersCannotControlTheTerminal) {
  cli::samples::Machine machine(1);
  proto::Lease& lease = machine.lend(1, "a\033[2Jb", {0}, std::chrono::minutes(5), 3);
  lease.note = "x\u202Ey\nz\tw\x9b";
  Answers answers;
  answers.status = machine.reply;
  Model model;
  model.take(answers);
  State state;
  keep_choice(state, model);
  for (const bool details : {false, true}) {
    for (int step = 0; step < 2; ++step) {
      state.details = details;
      const std::string text = plain_text(
          draw(model, state, {.width = 120, .height = 24, .host = "h\033[1m", .live = true}));
      for (const char c : text) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
      EXPECT_EQ(text.find("\u202E"), std::string::npos);
      state.details = false;
      (void)on_key(state, {Key::kDown}, model, 10);
    }
  }
}

}  // namespace
}  // namespace gpurota::cli::topview
