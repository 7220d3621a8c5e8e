#include "cli/status/status_view.h"

#include "base/text.h"
#include "cli/status/status_samples_test.h"
#include "cli/status/status_watch.h"
#include "cli/text/time_text.h"
#include "proto/text_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using samples::status_text;
using samples::summary_text;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

const WallTime kNow = *proto::parse_time("2026-11-21T01:00:00Z");

proto::Status::Reply a_status() {
  proto::Status::Reply reply;
  for (int i = 0; i < 3; ++i) {
    proto::Gpu& gpu = reply.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid = {"GPU-" + std::to_string(i)};
    gpu.name = "NVIDIA H100 80GB HBM3";
    gpu.state = i < 2 ? proto::GpuState::kInUse : proto::GpuState::kAvailable;
    gpu.memory_bytes = gib(80);
    gpu.used_bytes = Bytes();
    if (i < 2) gpu.leases = {{12}};
  }
  for (int i = 0; i < 2; ++i) reply.gpus[static_cast<std::size_t>(i)].reserved_bytes = gib(8);
  for (proto::Gpu& gpu : reply.gpus) gpu.available_bytes = gpu.memory_bytes - gpu.reserved_bytes;
  proto::Lease& lease = reply.leases.emplace_back();
  lease.lease_id = {12};
  lease.user = "alice";
  lease.kind = proto::LeaseKind::kRun;
  lease.share = proto::Share::kSlice;
  lease.state = proto::LeaseState::kActive;
  lease.since = kNow - 125min;
  lease.command = {{"python", "train me.py"}};
  lease.note = "night run";
  for (int i = 0; i < 2; ++i) {
    proto::LeaseGpu& gpu = lease.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid = reply.gpus[static_cast<std::size_t>(i)].uuid;
    gpu.limit_bytes = gib(8);
    gpu.used_bytes = mib(512);
    gpu.processes = 2 - i;
  }
  return reply;
}

proto::Finding& add_finding(proto::Status::Reply& reply, proto::FindingKind kind, int gpu) {
  proto::Finding& finding = reply.findings.emplace_back();
  finding.kind = kind;
  finding.gpu = gpu;
  finding.gpu_uuid = {"GPU-" + std::to_string(gpu)};
  finding.user = "bob";
  finding.since = kNow - 5min;
  finding.used_bytes = gib(9);
  finding.process_count = 3;
  return finding;
}

TEST(StatusView, ANameOfTwoHundredCharactersLeavesRoomForTheOthers) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].user = std::string(200, 'u');
  const std::string text = status_text(reply, {}, kNow);
  EXPECT_THAT(text, HasSubstr(" " + std::string(43, 'u') + "…  L12"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(44, 'u'))));
  reply.leases[0].as_name = "carol";
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("u… (carol)  L12"));
  // Programs get the whole name.
  StatusForm form;
  form.chosen = ChosenColumns{{kUser}, false};
  EXPECT_THAT(status_picture(reply, "node", form, {}, kNow), HasSubstr(std::string(190, 'u')));
}

TEST(StatusView, ATerminalOfAsciiGetsAsciiAlone) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].note = "größe → 漢字";
  Layout layout;
  layout.ascii = true;
  const std::string text = status_text(reply, layout, kNow);
  EXPECT_THAT(text, HasSubstr("gr??e > ????"));
  EXPECT_TRUE(std::all_of(text.begin(), text.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  EXPECT_EQ(ascii_text("a…b “x” 100 × 2"), "a.b \"x\" 100 x 2");
}

TEST(StatusView, ALeaseOnAGpuThatIsLostIsShown) {
  proto::Status::Reply reply = a_status();
  proto::LeaseGpu& share = reply.leases[0].gpus[1];
  share.index = -1;
  share.label = "lost";
  reply.gpus.erase(reply.gpus.begin() + 1);
  const auto lines = lines_of(status_text(reply, {}, kNow));
  ASSERT_EQ(lines.size(), 5u) << "the heading, two GPUs, what is left of one, and the lost one";
  EXPECT_THAT(lines[4], HasSubstr("GPU-1"));
  EXPECT_THAT(lines[4], HasSubstr("LOST"));
  EXPECT_THAT(lines[4], HasSubstr("L12"));
  reply.gpus.clear();
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("L12")) << "also when all are lost";
}

TEST(StatusView, ShowsGpusAndTheirLeasesInOneTable) {
  EXPECT_EQ(
      status_text(a_status(), {}, kNow),
      "GPU STATE   USER   LEASE  MEMORY GiB     FOR  MODEL           WHAT\n"
      "  0 in use  alice  L12       0.5 / 8   2h05m  H100 80GB HBM3  night run (python 'train "
      "me.py')\n"
      "    free                       0 / 72                         for run --memory\n"
      "  1 in use  alice  L12       0.5 / 8   2h05m  H100 80GB HBM3  night run (python 'train "
      "me.py')\n"
      "    free                       0 / 72                         for run --memory\n"
      "  2 free                       0 / 80         H100 80GB HBM3\n");
}

TEST(StatusView, AFreeGpuOfWhichLessCanBeLeasedSaysSo) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].available_bytes = gib(60);
  const auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines.back(), HasSubstr("60 GiB can be leased"));
}

TEST(StatusView, SaysSinceWhenAGpuIsFree) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].idle_since = kNow - 50h;
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[5], HasSubstr("2d02h"));
}

TEST(StatusView, StatesOfTheQueueAreShown) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].state = proto::GpuState::kHeld;
  reply.gpus[2].held_for = RequestId{7};
  reply.leases[0].ends = kNow + 25min;
  reply.leases[0].as_name = "carol";
  reply.waiting = 1;
  auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("alice (carol)"));
  EXPECT_THAT(lines[1], HasSubstr("ends in 25m"));
  EXPECT_THAT(lines[5], HasSubstr("held"));
  EXPECT_THAT(lines[5], HasSubstr("kept for R7"));
  EXPECT_EQ(lines[6], "1 waits: gpurota queue");
  reply.waiting = 0;
  EXPECT_THAT(status_text(reply, {}, kNow), Not(HasSubstr("wait")));
}

TEST(StatusView, GpuOfAFillerIsFreeUntilTheFillerExpires) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].kind = proto::LeaseKind::kFiller;
  apply_threshold(reply, gib(1));
  EXPECT_EQ(reply.gpus[0].state, proto::GpuState::kAvailable);
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[1], HasSubstr("  0 filler  alice"));
  reply.leases[0].state = proto::LeaseState::kExpired;
  reply.leases[0].ends = kNow - 4min;
  apply_threshold(reply, gib(1));
  EXPECT_EQ(reply.gpus[0].state, proto::GpuState::kInUse);
  const auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("  0 EXPIRED  alice"));
  EXPECT_THAT(lines[1], HasSubstr("ended 4m ago, still holds memory, filler"));
}

TEST(StatusView, AParkedLeaseIsShownAsParkedAndNotAsUnused) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].parked = proto::ParkState::kParked;
  for (proto::LeaseGpu& gpu : reply.leases[0].gpus) {
    gpu.used_bytes = Bytes();
    gpu.processes = 0;
  }
  const auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("  0 parked  alice"));
  EXPECT_THAT(lines[1], Not(HasSubstr("unused")));
  reply.leases[0].parked = proto::ParkState::kWaiting;
  reply.leases[0].park_wait = proto::Reason{.code = proto::ReasonCode::kLeasedOpenEnded,
                                            .text = "waits for GPU 0: bob's program (L4)"};
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[1],
              HasSubstr("waits for GPU 0: bob's program (L4)"));
}

TEST(StatusView, AGpuThatDrainsOrFailsSaysWhyInARowOfItsOwn) {
  proto::Status::Reply reply = a_status();
  reply.gpus[0].state = proto::GpuState::kDraining;
  reply.gpus[0].detail = "new fan on Friday";
  reply.gpus[2].state = proto::GpuState::kError;
  reply.gpus[2].detail = "fell off the bus";
  const auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("  0 DRAINING"));
  EXPECT_THAT(lines[1], HasSubstr("new fan on Friday"));
  EXPECT_TRUE(lines[2].starts_with("    in use    alice")) << lines[2];
  EXPECT_THAT(lines[3], HasSubstr("  1 in use")) << "what is left of a GPU that drains is not free";
  EXPECT_THAT(lines[5], HasSubstr("  2 ERROR"));
  EXPECT_THAT(lines[5], HasSubstr("fell off the bus"));
}

TEST(StatusView, UseWithoutALeaseNamesItsUserOnALeasedGpuToo) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].state = proto::GpuState::kUnreservedUse;
  reply.leases[0].gpus[0].limit_bytes.reset();
  add_finding(reply, proto::FindingKind::kUnreservedUse, 2).processes = {
      {77, gib(9), {{"/usr/bin/python3", "x.py"}}}, {78, gib(1), {}}};
  add_finding(reply, proto::FindingKind::kForeignUse, 0).lease_id = LeaseId{12};
  const auto lines = lines_of(status_text(reply, {}, kNow));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[2], HasSubstr("    NO LEASE  bob    -"));
  EXPECT_THAT(lines[2], HasSubstr("on L12's GPU, 3 processes"));
  EXPECT_THAT(lines[5], HasSubstr("  2 NO LEASE  bob    -"));
  EXPECT_THAT(lines[5], HasSubstr("pid 77 (python3 x.py) and 1 more"));
}

TEST(StatusView, ContainerIsNamedOnlyToUsersWhoMaySeeIt) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].state = proto::GpuState::kUnreservedUse;
  proto::Finding& found = add_finding(reply, proto::FindingKind::kUnreservedUse, 2);
  found.container = true;
  const auto shown = [&] { return lines_of(status_text(reply, {}, kNow)).back(); };
  EXPECT_THAT(shown(), HasSubstr("in a container"));
  const proto::Container web{proto::ContainerEngine::kDocker, std::string(64, 'a'), {}, "web", {}};
  const proto::Container shop{proto::ContainerEngine::kDocker, std::string(64, 'b'), {}, {}, {}};
  found.processes = {{77, gib(9), {}, web}, {78, gib(9), {}, web}};
  EXPECT_THAT(shown(), HasSubstr("in docker web"));
  EXPECT_THAT(shown(), Not(HasSubstr("others")));
  found.processes->push_back({79, gib(1), {}, shop});
  found.perhaps_of = LeaseId{12};
  EXPECT_THAT(shown(), HasSubstr("in docker bbbbbbbbbbbb and others, perhaps of L12"));
}

TEST(StatusView, UnusedLeaseAndLeaseOverItsLimitAreMarked) {
  proto::Status::Reply reply = a_status();
  add_finding(reply, proto::FindingKind::kOverLimit, 0).lease_id = LeaseId{12};
  reply.leases[0].gpus[0].used_bytes = gib(8) + mib(20);
  reply.leases[0].gpus[1].unused_since = kNow - 3h;
  const auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("OVER LIMIT  alice  L12      8.02 / 8"));
  EXPECT_THAT(lines[1], HasSubstr("over for 5m"));
  EXPECT_THAT(lines[3], HasSubstr("unused for 3h00m"));
  add_finding(reply, proto::FindingKind::kNotLimited, 0).lease_id = LeaseId{12};
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[1], HasSubstr("NO LIMIT "));
  reply = a_status();
  reply.leases[0].gpus[1].used_bytes = Bytes();
  reply.leases[0].gpus[1].processes = 0;
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[3], HasSubstr("  unused, night run"));
}

TEST(StatusView, SmallExcessAboveASoftLimitIsShownAsMore) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].gpus[0].soft_limit_bytes = gib(2);
  reply.leases[0].gpus[0].used_bytes = gib(2) + mib(40);
  const std::string line = lines_of(status_text(reply, {}, kNow))[1];
  EXPECT_THAT(line, HasSubstr("2.04 / 8"));
  EXPECT_THAT(line, HasSubstr("above its soft limit of 2 GiB"));
}

TEST(StatusView, SwapLeaseShowsTheTurnAndEvictedMemory) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].share = proto::Share::kSwap;
  EXPECT_THAT(status_text(reply, {}, kNow), Not(HasSubstr("TURN"))) << "while everything fits";
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("swap, night run"));
  proto::LeaseGpu& share = reply.leases[0].gpus[0];
  const auto shown = [&](const char* phase, int position) {
    share.turn = phase;
    share.turn_position = position;
    return lines_of(status_text(reply, {}, kNow))[1];
  };
  EXPECT_THAT(shown("holding", 0), HasSubstr("0.5 / 8   now  "));
  EXPECT_THAT(shown("entering", 0), HasSubstr(" now  "));
  EXPECT_THAT(shown("leaving", 0), HasSubstr(" ends  "));
  EXPECT_THAT(shown("waiting", 0), HasSubstr(" -  "));
  EXPECT_THAT(shown("waiting", 1), HasSubstr(" next  "));
  EXPECT_THAT(shown("waiting", 2), HasSubstr(" 2nd  "));
  EXPECT_THAT(shown("waiting", 3), HasSubstr(" 3rd  "));
  EXPECT_THAT(shown("waiting", 11), HasSubstr(" 11th  "));
  EXPECT_THAT(shown("waiting", 21), HasSubstr(" 21st  "));
  share.moved_out_bytes = gib(3);
  EXPECT_THAT(shown("waiting", 1), HasSubstr("3 GiB in host memory, night run"));
}

TEST(StatusView, LeaseShowsItsModelWithItsPurpose) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].model = "org/model-7b";
  EXPECT_THAT(status_text(reply, {}, kNow),
              HasSubstr("night run, org/model-7b (python 'train me.py')"));
}

TEST(StatusView, FitsEveryTerminalDownToFiftyFiveColumns) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].note = std::string(300, 'n');
  reply.leases[0].model = std::string(100, 'm');
  reply.gpus[1].detail = std::string(100, 'd');
  for (std::size_t width = 55; width <= 220; ++width) {
    const std::string text = status_text(reply, {width, false}, kNow);
    for (const std::string& line : lines_of(text)) {
      ASSERT_LE(display_width(line), width) << line;
    }
    ASSERT_THAT(text, HasSubstr("in use"));
    ASSERT_THAT(text, HasSubstr("alice"));
  }
}

TEST(StatusView, ForeignTextCannotDriveTheTerminal) {
  proto::Status::Reply reply = a_status();
  reply.gpus[0].name = "\x1b[31m\nL99";
  reply.gpus[0].state = proto::GpuState::kError;
  reply.gpus[0].detail = "\a\xff";
  reply.leases[0].user = "al\tice\x7f";
  reply.leases[0].note = "\xe2\x80\xae";
  reply.leases[0].model = "\x1b]0;x\a";
  add_finding(reply, proto::FindingKind::kUnreservedUse, 2).user = "\x1b[2J";
  const std::string text = status_text(reply, {200, false}, kNow);
  EXPECT_EQ(text.find_first_of("\x1b\a\t\x7f"), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(valid_utf8(text), text);
  EXPECT_EQ(lines_of(text).size(), 6u);
}

TEST(StatusView, WideCharactersKeepTheColumnsInLine) {
  proto::Status::Reply reply = a_status();
  reply.gpus[1].name = "世界";
  const auto lines = lines_of(status_text(reply, {}, kNow));
  const auto column = [](const std::string& line, const char* word) {
    return display_width(line.substr(0, line.find(word)));
  };
  EXPECT_EQ(column(lines[1], "night run"), column(lines[3], "night run"));
}

TEST(StatusView, ColourIsOnlyThereWhenWanted) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].state = proto::GpuState::kError;
  EXPECT_EQ(status_text(reply, {80, false}, kNow).find('\033'), std::string::npos);
  const std::string text = status_text(reply, {200, true}, kNow);
  EXPECT_THAT(text, HasSubstr("\033[32mfree\033[0m"));
  EXPECT_THAT(text, HasSubstr("\033[31mERROR\033[0m"));
}

TEST(StatusView, MigInstanceHasALabelOfItsOwn) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].parent = reply.gpus[1].uuid;
  reply.gpus[2].index = 0;
  reply.gpus[2].label = "1:0";
  reply.gpus[2].name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
  reply.gpus[1].state = proto::GpuState::kSplit;
  const std::string text = status_text(reply, {200, false}, kNow);
  EXPECT_THAT(text, HasSubstr("\n1:0 free "));
  EXPECT_THAT(text, HasSubstr(" MIG 1g.10gb\n"));
  EXPECT_THAT(text, HasSubstr("  1 split "));
  EXPECT_THAT(text, HasSubstr("into 1 MIG instance\n"));
  EXPECT_THAT(summary_text(reply, "node7", {}), HasSubstr("node7     2 "));
}

std::vector<std::string> chosen_lines(const proto::Status::Reply& reply, const std::string& names) {
  const ChosenColumns chosen{*parse_status_columns(names), false};
  return lines_of(chosen_text({{"node7", &reply}}, chosen, {}, kNow));
}

TEST(StatusFormat, EachRowHasAllChosenFields) {
  proto::Status::Reply reply = a_status();
  reply.leases.front().name = "train7";
  reply.leases.front().ends = kNow + 90min;
  EXPECT_THAT(chosen_lines(reply, "host,lease,gpu,user,memory,size,name,ends,processes,uuid"),
              ::testing::ElementsAre("node7\tL12\t0\talice\t0.5\t8\ttrain7\t1h30m\t2\tGPU-0",
                                     "node7\t-\t0\t-\t0\t72\t-\t-\t-\tGPU-0",
                                     "node7\tL12\t1\talice\t0.5\t8\ttrain7\t1h30m\t1\tGPU-1",
                                     "node7\t-\t1\t-\t0\t72\t-\t-\t-\tGPU-1",
                                     "node7\t-\t2\t-\t0\t80\t-\t-\t-\tGPU-2"));
}

TEST(StatusFormat, AColumnMayStandTwiceAndTitlesAreOnTop) {
  const proto::Status::Reply reply = a_status();
  const ChosenColumns chosen{*parse_status_columns("size,gpu,gpu"), true};
  EXPECT_THAT(lines_of(chosen_text({{"", &reply}}, chosen, {}, kNow)).front(), "SIZE  GPU  GPU");
}

TEST(StatusFormat, FitsTheTerminal) {
  proto::Status::Reply reply = a_status();
  reply.leases.front().note = std::string(150, 'n');
  const ChosenColumns chosen{*parse_status_columns("uuid,user,what,note"), true};
  for (const std::string& line : lines_of(chosen_text({{"", &reply}}, chosen, {60, false}, kNow))) {
    EXPECT_LE(display_width(line), 60U) << line;
  }
}

TEST(StatusFormat, ForeignTextStaysInItsCell) {
  proto::Status::Reply reply = a_status();
  reply.leases.front().note = "a\tb\nc\033[2J";
  EXPECT_EQ(chosen_lines(reply, "note,gpu").size(), 5U);
  for (const std::string& line : chosen_lines(reply, "note,gpu")) {
    EXPECT_THAT(line, Not(HasSubstr("\033")));
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 1) << line;
  }
  reply.leases.front().note = "  ";
  EXPECT_EQ(chosen_lines(reply, "note").front(), "-");
}

TEST(StatusView, NoGpuPointsToDoctor) {
  EXPECT_THAT(status_text({}, {}, kNow), HasSubstr("gpurota doctor"));
}

TEST(StatusView, TheSummaryCountsStatesAndKinds) {
  proto::Status::Reply reply = a_status();
  EXPECT_EQ(summary_text(reply, "node7", {}),
            "HOST   GPUS  FREE  IN USE  MODELS\n"
            "node7     3     1       2  3 x H100 80GB HBM3\n");
  reply.gpus[1].name = "NVIDIA A100";
  reply.gpus[1].state = proto::GpuState::kError;
  reply.gpus[2].state = proto::GpuState::kHeld;
  reply.waiting = 3;
  EXPECT_EQ(summary_text(reply, "node7", {}),
            "HOST   GPUS  FREE  IN USE  HELD  ERROR  WAITING  MODELS\n"
            "node7     3     0       1     1      1        3  1 x A100, 2 x H100 80GB HBM3\n");
}

TEST(StatusView, TheThresholdDecidesWhatIsUnreservedUse) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].unreserved_bytes = mib(600);
  reply.gpus[1].state = proto::GpuState::kError;
  apply_threshold(reply, gib(1));
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kAvailable);
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("600 MiB used without a lease: gpurota ps"));
  apply_threshold(reply, mib(512));
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kUnreservedUse);
  EXPECT_EQ(reply.gpus[2].detail, "600 MiB without a lease: see gpurota ps");
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("  2 NO LEASE  ?      -"));
  EXPECT_EQ(reply.gpus[0].state, proto::GpuState::kInUse);
  EXPECT_EQ(reply.gpus[1].state, proto::GpuState::kError);
  reply.gpus[2].unreserved_bytes = Bytes(1);
  apply_threshold(reply, Bytes());
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kUnreservedUse);
}

TEST(StatusView, UseBelowTheThresholdHasNoRowBesideAFreeGpu) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].unreserved_bytes = gib(9);
  reply.gpus[2].state = proto::GpuState::kUnreservedUse;
  add_finding(reply, proto::FindingKind::kUnreservedUse, 2);
  add_finding(reply, proto::FindingKind::kForeignUse, 0).lease_id = LeaseId{12};
  apply_threshold(reply, gib(40));
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kAvailable);
  ASSERT_EQ(reply.findings.size(), 1u);
  EXPECT_EQ(reply.findings[0].kind, proto::FindingKind::kForeignUse);
}

TEST(TimeText, SpansAreShortAndNeverNegative) {
  EXPECT_EQ(span_text(-5s), "0s");
  EXPECT_EQ(span_text(59s), "59s");
  EXPECT_EQ(span_text(61s), "1m");
  EXPECT_EQ(span_text(3h + 4min), "3h04m");
  EXPECT_EQ(span_text(75h), "3d03h");
}

TEST(StatusWatch, APictureNeverScrollsTheScreen) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(screen_lines("a\nb\n", 10), (Lines{"a", "b"}));
  EXPECT_EQ(screen_lines("a\nb\n", 2), (Lines{"a", "b"}));
  EXPECT_EQ(screen_lines("a\nb\nc\n", 2), (Lines{"a", "… 2 more lines"}));
  EXPECT_EQ(redraw_text({}, {"a", "b"}), "\033[H\033[J\033[1;1Ha\033[K\033[2;1Hb\033[K");
}

TEST(StatusWatch, SendsOnlyTheLinesThatChanged) {
  EXPECT_EQ(redraw_text({"a", "b", "c"}, {"a", "B", "c"}), "\033[2;1HB\033[K");
  EXPECT_EQ(redraw_text({"a", "b"}, {"a", "b"}), "");
  EXPECT_EQ(redraw_text({"a"}, {"a", "b"}), "\033[2;1Hb\033[K");
  EXPECT_EQ(redraw_text({"a", "b", "c"}, {"a"}), "\033[2;1H\033[J");
}

TEST(StatusView, UnknownUseIsNotShownAsZero) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].gpus[0].used_bytes.reset();
  reply.leases[0].gpus[0].processes = 0;
  reply.gpus[2].used_bytes.reset();
  const std::string text = status_text(reply, {}, kNow);
  EXPECT_THAT(text, ContainsRegex("L12 +\\? / 8 "));
  EXPECT_THAT(text, ContainsRegex("2 free +\\? / 80 "));
  EXPECT_THAT(text, Not(HasSubstr("unused")));
}

}  // namespace
}  // namespace gpurota::cli
