#include "cli/status_view.h"

#include "base/text.h"
#include "cli/status_watch.h"
#include "proto/text_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
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
    if (i < 2) gpu.leases = {{12}};
  }
  reply.gpus[0].reserved_bytes = gib(8);
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

TEST(StatusView, ALeaseOnAGpuThatIsLostIsShown) {
  proto::Status::Reply reply = a_status();
  proto::LeaseGpu& share = reply.leases[0].gpus[1];
  share.index = -1;
  share.label = "lost";
  reply.gpus.erase(reply.gpus.begin() + 1);
  const auto lines = lines_of(status_text(reply, {}, kNow));
  ASSERT_EQ(lines.size(), 4u) << "the heading, two GPUs, and the lost one";
  EXPECT_THAT(lines[3], HasSubstr("GPU-1"));
  EXPECT_THAT(lines[3], HasSubstr("lost"));
  EXPECT_THAT(lines[3], HasSubstr("L12"));
  reply.gpus.clear();
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("L12")) << "also when all are lost";
}

TEST(StatusView, IsOneTableOfGpusAndWhoHasThem) {
  EXPECT_EQ(status_text(a_status(), {}, kNow),
            "GPU  NAME            STATE      USER     FOR  SHARE  TYPE  LEASE     MEMORY  "
            "DETAILS      VALIDATION   NOTE\n"
            "  0  H100 80GB HBM3  in use     alice  2h05m  slice  run   L12    0.5/8 GiB  "
            "72 GiB left  2 processes  night run (python 'train me.py')\n"
            "  1  H100 80GB HBM3  in use     alice  2h05m  slice  run   L12    0.5/8 GiB  "
            "80 GiB left  1 process    night run (python 'train me.py')\n"
            "  2  H100 80GB HBM3  available                                     0/80 GiB  "
            "never used\n");
}

TEST(StatusView, SaysSinceWhenAGpuIsFree) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].idle_since = kNow - 50h;
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[3], HasSubstr("2d02h"));
}

TEST(StatusView, StatesOfTheQueueAreShown) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].held_for = RequestId{7};
  reply.gpus[1].state = proto::GpuState::kDraining;
  reply.leases[0].ends = kNow + 25min;
  reply.leases[0].as_name = "carol";
  auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("alice (carol)"));
  EXPECT_THAT(lines[1], HasSubstr("ends in 25m"));
  EXPECT_THAT(lines[2], HasSubstr("draining"));
  EXPECT_THAT(lines[3], HasSubstr("held"));
  EXPECT_THAT(lines[3], HasSubstr("for R7"));
  reply.leases[0].state = proto::LeaseState::kExpired;
  reply.leases[0].kind = proto::LeaseKind::kFiller;
  lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("available (filler)"));
  EXPECT_THAT(lines[1], HasSubstr("expired, holds memory"));
}

TEST(StatusView, WhyAGpuDrainsIsSaidAlsoWhileSomebodyHasIt) {
  proto::Status::Reply reply = a_status();
  reply.gpus[0].state = proto::GpuState::kDraining;
  reply.gpus[0].detail = "new fan on Friday";
  reply.leases[0].ends = kNow + 25min;
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[1],
              HasSubstr("ends in 25m; new fan on Friday"));
  reply.gpus[0].detail = "";
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[1], ::testing::Not(HasSubstr(";")));
}

TEST(StatusView, SeveralSlicesOfAGpuShareItsFirstCells) {
  proto::Status::Reply reply = a_status();
  reply.leases.push_back(reply.leases[0]);
  reply.leases[1].lease_id = {13};
  reply.leases[1].user = "bob";
  const auto lines = lines_of(status_text(reply, {}, kNow));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_TRUE(lines[2].starts_with("                                bob")) << lines[2];
}

TEST(StatusView, UseWithoutALeaseNamesItsUserAlsoWhereSomebodyHasTheGpu) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].state = proto::GpuState::kUnreservedUse;
  add_finding(reply, proto::FindingKind::kUnreservedUse, 2);
  add_finding(reply, proto::FindingKind::kForeignUse, 0).lease_id = LeaseId{12};
  const auto lines = lines_of(status_text(reply, {}, kNow));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[2], HasSubstr("bob"));
  EXPECT_THAT(lines[2], HasSubstr("on the GPU of L12"));
  EXPECT_THAT(lines[4], HasSubstr("unreserved use  bob"));
  EXPECT_THAT(lines[4], HasSubstr("9 GiB  without a lease"));
  EXPECT_THAT(lines[4], HasSubstr("3 processes"));
}

TEST(StatusView, ValidationTellsAnOwnersUseFromNoneAndFromTooMuch) {
  proto::Status::Reply reply = a_status();
  add_finding(reply, proto::FindingKind::kOverLimit, 0).lease_id = LeaseId{12};
  reply.leases[0].gpus[1].unused_since = kNow - 3h;
  const auto lines = lines_of(status_text(reply, {}, kNow));
  EXPECT_THAT(lines[1], HasSubstr("over its limit for 5m"));
  EXPECT_THAT(lines[2], HasSubstr("unused for 3h00m"));
  add_finding(reply, proto::FindingKind::kNotLimited, 0).lease_id = LeaseId{12};
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[1], HasSubstr("not limited for 5m"));
  reply = a_status();
  reply.leases[0].gpus[1] = {1, {}, {"GPU-1"}, {}, {}, {}, {}, 0, {}};
  EXPECT_THAT(lines_of(status_text(reply, {}, kNow))[2], HasSubstr("no use seen"));
}

TEST(StatusView, TheModelHasAColumnOnlyWhereThereIsOne) {
  proto::Status::Reply reply = a_status();
  EXPECT_THAT(status_text(reply, {}, kNow), Not(HasSubstr("MODEL")));
  reply.leases[0].model = "org/model-7b";
  EXPECT_THAT(status_text(reply, {}, kNow), HasSubstr("org/model-7b"));
}

TEST(StatusView, FitsEveryTerminalDownToFortyColumns) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].note = std::string(300, 'n');
  reply.leases[0].model = std::string(100, 'm');
  reply.gpus[1].detail = std::string(100, 'd');
  for (std::size_t width = 40; width <= 220; ++width) {
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
  reply.gpus[0].detail = "\a\xff";
  reply.leases[0].user = "al\tice\x7f";
  reply.leases[0].note = "\xe2\x80\xae";
  reply.leases[0].model = "\x1b]0;x\a";
  add_finding(reply, proto::FindingKind::kUnreservedUse, 2).user = "\x1b[2J";
  const std::string text = status_text(reply, {100, false}, kNow);
  EXPECT_EQ(text.find_first_of("\x1b\a\t\x7f"), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(valid_utf8(text), text);
  EXPECT_EQ(lines_of(text).size(), 4u);
}

TEST(StatusView, WideCharactersKeepTheColumnsInLine) {
  proto::Status::Reply reply = a_status();
  reply.gpus[1].name = "世界";
  const auto lines = lines_of(status_text(reply, {}, kNow));
  const auto column = [](const std::string& line, const char* word) {
    return display_width(line.substr(0, line.find(word)));
  };
  EXPECT_EQ(column(lines[1], "in use"), column(lines[2], "in use"));
}

TEST(StatusView, ColourIsOnlyThereWhenWanted) {
  EXPECT_EQ(status_text(a_status(), {80, false}, kNow).find('\033'), std::string::npos);
  EXPECT_THAT(status_text(a_status(), {200, true}, kNow), HasSubstr("\033[32mavailable\033[0m"));
}

TEST(StatusView, AMigInstanceIsNamedBesideItsGpuNotLikeOne) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].parent = reply.gpus[1].uuid;
  reply.gpus[2].index = 0;
  reply.gpus[2].label = "1:0";
  reply.gpus[1].state = proto::GpuState::kAvailable;
  const std::string text = status_text(reply, {200, false}, kNow);
  EXPECT_THAT(text, HasSubstr("\n1:0 "));
  EXPECT_THAT(text, HasSubstr(" split "));
  EXPECT_THAT(summary_text(reply, "node7", {}), HasSubstr("node7     2 "));
}

TEST(StatusView, NoGpuPointsToDoctor) {
  EXPECT_THAT(status_text({}, {}, kNow), HasSubstr("gpurota doctor"));
}

TEST(StatusView, TheSummaryCountsStatesAndKinds) {
  proto::Status::Reply reply = a_status();
  reply.gpus[1].name = "NVIDIA A100";
  reply.gpus[1].state = proto::GpuState::kError;
  EXPECT_EQ(summary_text(reply, "node7", {}),
            "HOST   GPUS  AVAILABLE  IN USE  OTHER  MODELS\n"
            "node7     3          1       1      1  1 x A100, 2 x H100 80GB HBM3\n");
}

TEST(StatusView, TheThresholdDecidesWhatIsUnreservedUse) {
  proto::Status::Reply reply = a_status();
  reply.gpus[2].unreserved_bytes = mib(600);
  reply.gpus[1].state = proto::GpuState::kError;
  apply_threshold(reply, gib(1));
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kAvailable);
  apply_threshold(reply, mib(512));
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kUnreservedUse);
  EXPECT_EQ(reply.gpus[2].detail, "600 MiB without a lease: see gpurota ps");
  EXPECT_EQ(reply.gpus[0].state, proto::GpuState::kInUse);
  EXPECT_EQ(reply.gpus[1].state, proto::GpuState::kError);
  reply.gpus[2].unreserved_bytes = Bytes(1);
  apply_threshold(reply, Bytes());
  EXPECT_EQ(reply.gpus[2].state, proto::GpuState::kUnreservedUse);
}

TEST(StatusView, SpansAreShortAndNeverNegative) {
  EXPECT_EQ(span_text(-5s), "0s");
  EXPECT_EQ(span_text(59s), "59s");
  EXPECT_EQ(span_text(61s), "1m");
  EXPECT_EQ(span_text(3h + 4min), "3h04m");
  EXPECT_EQ(span_text(75h), "3d03h");
}

TEST(StatusWatch, APictureNeverScrollsTheScreen) {
  EXPECT_EQ(screen_text("a\nb\n", 10), "\033[Ha\033[K\nb\033[K\n\033[J");
  EXPECT_EQ(screen_text("a\nb\n", 2), "\033[Ha\033[K\nb\033[K\033[J");
  EXPECT_EQ(screen_text("a\nb\nc\n", 2), "\033[Ha\033[K\n… 2 more lines\033[K\033[J");
}

}  // namespace
}  // namespace gpurota::cli
