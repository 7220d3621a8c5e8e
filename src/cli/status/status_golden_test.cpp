// `gpurota status` of simulated machines on terminals of five widths, compared with the files in
// testdata/status. With GPUROTA_REWRITE_GOLDEN=1 the files are rewritten: check each of them then.
#include "base/text.h"
#include "cli/status/status_samples_test.h"
#include "cli/status/status_view.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace gpurota::cli {
namespace {

constexpr std::size_t kWidths[] = {60, 80, 100, 132, 200};

std::string file_of(const samples::Sample& sample) {
  return fmt::format("{}/status/{}.txt", GPUROTA_TESTDATA, sample.name);
}

std::string golden_text(const samples::Sample& sample) {
  std::string text;
  for (const std::size_t width : kWidths) {
    text += fmt::format("{}{:->{}}\n{}", text.empty() ? "" : "\n", fmt::format(" {}", width), width,
                        samples::status_text(sample.reply, {width, false}, samples::kNow));
  }
  return text + fmt::format("\n--summary\n{}", samples::summary_text(sample.reply, "node7", {}));
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The lines that differ: "-" is the file's, "+" is the new one.
std::string difference(const std::string& file, const std::string& now) {
  const std::vector<std::string> old_lines = split(file), new_lines = split(now);
  std::string text;
  for (std::size_t i = 0; i < std::max(old_lines.size(), new_lines.size()); ++i) {
    const bool in_old = i < old_lines.size(), in_new = i < new_lines.size();
    if (in_old && in_new && old_lines[i] == new_lines[i]) continue;
    if (in_old) text += fmt::format("{}: -{}\n", i + 1, old_lines[i]);
    if (in_new) text += fmt::format("{}: +{}\n", i + 1, new_lines[i]);
  }
  return text;
}

TEST(StatusGolden, OutputOfEachMachineMatchesItsFile) {
  const char* const rewrite = std::getenv("GPUROTA_REWRITE_GOLDEN");
  for (const samples::Sample& sample : samples::all()) {
    const std::string now = golden_text(sample);
    if (rewrite != nullptr && *rewrite == '1') {
      std::ofstream(file_of(sample)) << now;
      continue;
    }
    std::ifstream in(file_of(sample));
    std::stringstream file;
    file << in.rdbuf();
    EXPECT_EQ(difference(file.str(), now), "")
        << file_of(sample) << " differs; GPUROTA_REWRITE_GOLDEN=1 writes it anew";
  }
}

TEST(StatusGolden, EachFileBelongsToAMachine) {
  std::set<std::string> files, machines;
  for (const auto& entry : std::filesystem::directory_iterator(GPUROTA_TESTDATA "/status")) {
    files.insert(entry.path().string());
  }
  for (const samples::Sample& sample : samples::all()) machines.insert(file_of(sample));
  EXPECT_EQ(files, machines);
}

// A text that is never cut may make a line longer than the terminal only if the text alone is
// longer.
TEST(StatusGolden, NoLineIsWiderThanTheTerminal) {
  for (const samples::Sample& sample : samples::all()) {
    if (sample.name == "long-names") continue;
    for (std::size_t width = 60; width <= 220; width += 4) {
      for (const std::string& line :
           split(samples::status_text(sample.reply, {width, false}, samples::kNow))) {
        ASSERT_LE(display_width(line), width) << sample.name << ": " << line;
      }
    }
  }
}

// Users, leases, and the ends of leases are readable on every terminal.
TEST(StatusGolden, ImportantColumnsAreNotCutAtAnyWidth) {
  for (const samples::Sample& sample : samples::all()) {
    for (std::size_t width = 40; width <= 200; width += 20) {
      const std::string text = samples::status_text(sample.reply, {width, false}, samples::kNow);
      for (const proto::Lease& lease : sample.reply.leases) {
        EXPECT_NE(text.find(display_text(lease.user)), std::string::npos) << text;
        EXPECT_NE(text.find(to_string(lease.lease_id)), std::string::npos) << text;
        if (!lease.ends || lease.state != proto::LeaseState::kActive) continue;
        const std::string end = "ends in " + span_text(*lease.ends - samples::kNow);
        EXPECT_NE(text.find(end), std::string::npos) << text;
      }
      for (const proto::Finding& finding : sample.reply.findings) {
        EXPECT_NE(text.find(display_text(*finding.user)), std::string::npos) << text;
      }
    }
  }
}

}  // namespace
}  // namespace gpurota::cli
