#include "cli/queue/queue_text.h"

#include "cli/args/args.h"
#include "cli/queue/waiting.h"
#include "cli/text/time_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow{1700000000s};

proto::Request request() {
  proto::Request request;
  request.request_id = {7};
  request.position = 2;
  request.uid = 1000;
  request.user = "alice";
  request.since = kNow - 5min;
  request.gpus = 3;
  request.free = 2;
  request.planned = {0, 1};
  request.reason = "as an older program shows it";
  request.expected = kNow + 40min;
  request.wait_reason = {.code = proto::ReasonCode::kLeasedUntil,
                         .text =
                             "2 of 3 GPUs are free for it; the next is expected at {time}, when "
                             "bob's reservation (L5) on GPU 1 ends",
                         .time = request.expected,
                         .remedy = "starts now with --gpus 2"};
  return request;
}

TEST(Duration, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*parse_duration("30s"), 30s);
  EXPECT_EQ(*parse_duration("10m"), 10min);
  EXPECT_EQ(*parse_duration("1.5h"), 90min);
  EXPECT_EQ(*parse_duration("1h30m"), 90min);
  EXPECT_EQ(*parse_duration("2d"), 48h);
}

TEST(Duration, SaysWhatToWriteInstead) {
  for (const char* text : {"", "10", "-5m", "5x", "m", "0s", "1e9d", "nan", "5 m"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("10m"));
  }
}

TEST(Duration, IsWrittenAsPeopleReadIt) {
  EXPECT_EQ(duration_text(90s), "1 min 30 s");
  EXPECT_EQ(duration_text(90min), "1 h 30 min");
  EXPECT_EQ(duration_text(25h), "1 d 1 h");
}

TEST(WaitingText, ShowsReasonAndRemedy) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(
      waiting_text(request(), kNow, true),
      "R7, position 2: 2 of 3 GPUs are free for it; the next is expected at 22:53, when bob's "
      "reservation (L5) on GPU 1 ends; starts now with --gpus 2");
  EXPECT_THAT(waiting_text(request(), kNow, false), Not(HasSubstr("starts now")));
}

TEST(WaitingText, ForeignTextIsMadeSafe) {
  proto::Request hostile = request();
  hostile.wait_reason->text = "GPU 1 is draining: \x1b[31m";
  EXPECT_THAT(waiting_text(hostile, kNow, true), Not(HasSubstr("\x1b")));
}

TEST(QueueText, HasALineForEachInOrder) {
  const std::string text = queue_text({{request()}}, {}, kNow);
  EXPECT_THAT(text, HasSubstr("R7"));
  EXPECT_THAT(text, HasSubstr("alice"));
  EXPECT_THAT(text, HasSubstr("the next is expected at 22:53, when bob's"));
  EXPECT_THAT(text, HasSubstr("; starts now with --gpus 2"));
  EXPECT_EQ(queue_text({}, {}, kNow), "the queue is empty\n");
  EXPECT_THAT(text, Not(HasSubstr("interactive")));
  proto::Request server = request();
  server.latency = proto::LatencyClass::kInteractive;
  EXPECT_THAT(queue_text({{server}}, {}, kNow), HasSubstr(" interactive "));
}

TEST(ReservationText, CanBeEvaluatedByAShellWhateverIsInIt) {
  proto::Acquire::Reply reply;
  reply.lease.lease_id = {5};
  reply.lease.gpus = {{.index = 0}, {.index = 2}};
  reply.environment = {{"CUDA_VISIBLE_DEVICES", "0,2"}, {"X", "it's $(rm)"}};
  EXPECT_EQ(export_text(reply, nullptr),
            "unset GPUROTA_LEASE GPUROTA_TOKEN GPUROTA_SOCKET GPUROTA_WHOLE CUDA_DEVICE_ORDER; "
            "export CUDA_VISIBLE_DEVICES='0,2' X='it'\\''s $(rm)'\n");
  EXPECT_EQ(short_text(reply.lease), "0,2\n");
}

TEST(ReservationText, TheLibraryOfTheLeaseThatTheShellHadIsReplaced) {
  const char* const inherited[] = {"GPUROTA_LEASE=L1", "LD_PRELOAD=/old/libgpurota.so:/l/other.so",
                                   nullptr};
  proto::Acquire::Reply reply;
  EXPECT_THAT(export_text(reply, inherited), HasSubstr("LD_PRELOAD='/l/other.so'"));
  reply.preload = "/new/libgpurota.so";
  EXPECT_THAT(export_text(reply, inherited),
              HasSubstr("LD_PRELOAD='/new/libgpurota.so:/l/other.so'"));
  const char* const alone[] = {"GPUROTA_LEASE=L1", "LD_PRELOAD=/old/libgpurota.so", nullptr};
  reply.preload.reset();
  EXPECT_THAT(export_text(reply, alone), HasSubstr("CUDA_DEVICE_ORDER LD_PRELOAD;"));
  const char* const site[] = {"LD_PRELOAD=/l/libgpurota.so", nullptr};
  EXPECT_THAT(export_text(reply, site), Not(HasSubstr("LD_PRELOAD")));
}

TEST(ReservationText, AMigInstanceIsNamedAsProgramsKnowIt) {
  proto::Lease lease;
  lease.gpus = {{.index = 0, .label = "0:0", .uuid = GpuUuid{"MIG-1"}}, {.index = 2, .label = "2"}};
  EXPECT_EQ(short_text(lease), "MIG-1,2\n");
}

TEST(Explain, SaysUntilWhenALeaseHasItsGpusIfABookingOfThemBegins) {
  proto::Status::Reply status;
  proto::Lease& lease = status.leases.emplace_back();
  lease.lease_id = {5};
  lease.state = proto::LeaseState::kActive;
  lease.gpus = {{.index = 1}};
  const auto text = [&] {
    return explain_text(*explained({{}, LeaseId{5}, 0}, {}, status, {}), {}, 1000, kNow);
  };
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("booking")));
  status.leases.front().leaves = kNow + 40min;
  EXPECT_THAT(text(), HasSubstr("  has its GPUs at least until "));
  EXPECT_THAT(text(), HasSubstr(", when a booking of them begins\n"));
  status.leases.front().state = proto::LeaseState::kEnding;
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("booking")));
}

TEST(Explain, SaysWhoWaitsForALeaseAndWhenItEnds) {
  proto::Status::Reply status;
  proto::Lease& lease = status.leases.emplace_back();
  lease.lease_id = {5};
  lease.kind = proto::LeaseKind::kReservation;
  lease.state = proto::LeaseState::kActive;
  lease.user = "bob";
  lease.gpus = {{.index = 1}};
  lease.ends = kNow + 40min;
  const auto chosen = explained({{}, LeaseId{5}, 0}, {request()}, status, {});
  ASSERT_TRUE(chosen);
  EXPECT_THAT(explain_text(*chosen, {request()}, 1000, kNow),
              HasSubstr("R7 of alice waits for it"));
  EXPECT_FALSE(explained({RequestId{9}, {}, 0}, {request()}, status, {}));
  const auto of_nobody = explained({{}, {}, 42}, {request()}, status, {});
  EXPECT_THAT(explain_text(*of_nobody, {request()}, 1000, kNow), HasSubstr("nothing"));
}

TEST(Explain, SaysForWhomWorkIsHeldBack) {
  Explained what;
  proto::Lease lease;
  lease.lease_id = {3};
  lease.user = "bob";
  lease.since = kNow - 5min;
  lease.gpus = {{.index = 1}};
  lease.latency = proto::LatencyClass::kNormal;
  lease.held_seconds = 0;
  what.status.leases = {lease};
  EXPECT_THAT(explain_text(what, {}, 1001, kNow), Not(HasSubstr("work")));
  what.status.leases[0].held_back_for = {LeaseId{1}, LeaseId{2}};
  what.status.leases[0].held_seconds = 90;
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("  its programs hold back work while programs of L1, L2 have work\n"
                        "  its programs have held back work for 1 min 30 s so far\n"));
  what.status.leases = {lease};
  what.status.leases[0].latency = proto::LatencyClass::kInteractive;
  EXPECT_THAT(explain_text(what, {}, 1001, kNow), HasSubstr("  is interactive: other slices"));
}

TEST(Explain, SaysHowMuchOfItsShareALeaseGot) {
  Explained what;
  proto::Lease lease;
  lease.lease_id = {3};
  lease.uid = 1001;
  lease.since = kNow - 5min;
  lease.gpus = {{.index = 1}};
  lease.compute_percent = 30;
  lease.last_minute.emplace();
  lease.last_minute->seconds = 60;
  lease.last_minute->held_percent = 69;
  lease.last_minute->got_percent = 31;
  lease.last_minute->held_for = {{LeaseId{4}, 69, proto::LatencyClass::kNormal}};
  what.status.leases = {lease};
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("  its work was held back for 69 % of the last minute, for L4\n"
                        "  has at least 30 % of the compute time of GPU 1 while other slices have "
                        "work there\n"
                        "  its part of the compute time of GPU 1: 31 % in the last minute, and "
                        "wants more\n"));
}

TEST(Explain, SaysWhoEnforcesALimit) {
  Explained what;
  proto::Lease lease;
  lease.lease_id = {3};
  lease.user = "bob";
  lease.uid = 1001;
  lease.since = kNow - 5min;
  lease.gpus = {{.index = 1}};
  lease.enforced_by = proto::Enforcer::kLibrary;
  what.status.leases = {lease};
  EXPECT_THAT(explain_text(what, {}, 1001, kNow), Not(HasSubstr("enforced")));
  what.status.leases[0].not_by_driver = "it has no control group of its own";
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("  its limit is enforced by the library alone: it has no control group of "
                        "its own\n"));
  what.status.leases[0].gpus[0].driver_limit_bytes = gib(2);
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("enforced by the library, and by the driver in part: it has no control"));
  what.status.leases[0].not_by_driver.reset();
  what.status.leases[0].enforced_by = proto::Enforcer::kLibraryAndDriver;
  what.status.leases[0].gpus[0].driver_limit_bytes = gib(2);
  what.status.leases[0].limited_group = "/sys/fs/cgroup/a";
  EXPECT_THAT(
      explain_text(what, {}, 1001, kNow),
      HasSubstr("  its limit is enforced by the library and the driver, which lets its programs "
                "have 2 GiB of GPU 1\n"
                "  somebody else has set a limit of the driver, which counts: /sys/fs/cgroup/a\n"));
  what.status.leases[0].kind = proto::LeaseKind::kPod;
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("lets all programs of its pod together have 2 GiB of GPU 1\n"));
}

TEST(Explain, SaysThatALeaseIsParkedOrWhyNot) {
  Explained what;
  proto::Lease& lease = what.status.leases.emplace_back();
  lease.lease_id = {3};
  lease.since = kNow - 5min;
  lease.gpus = {{.index = 1}};
  lease.park_trouble = "L3 is not parked: process 7 waits";
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("  L3 is not parked: process 7 waits\n"));
  what.status.leases[0].park_trouble.reset();
  what.status.leases[0].parked = proto::ParkState::kParked;
  EXPECT_THAT(explain_text(what, {}, 1001, kNow),
              HasSubstr("is parked: its processes are in host memory until 'gpurota unpark L3'\n"));
  what.status.leases[0].parked = proto::ParkState::kWaiting;
  what.status.leases[0].park_wait = proto::Reason{.code = proto::ReasonCode::kLeasedOpenEnded,
                                                  .text = "waits for GPU 0: bob's program (L4)"};
  EXPECT_THAT(
      explain_text(what, {}, 1001, kNow),
      HasSubstr("as soon as there is room for it\n  waits for GPU 0: bob's program (L4)\n"));
  what.status.leases[0].parked = proto::ParkState::kUnparking;
  EXPECT_THAT(explain_text(what, {}, 1001, kNow), HasSubstr("or back to their GPU\n"));
}

TEST(Explain, ShowsTheRemedyUnderEachRequest) {
  auto chosen = explained({request().request_id, {}, 0}, {request()}, {}, {});
  ASSERT_TRUE(chosen);
  proto::Alternative own{.change = proto::AlternativeChange::kSwap,
                         .labels = {"0"},
                         .remedy = "starts now with --swap"};
  own.request_id = request().request_id;
  proto::Alternative other = own;
  other.request_id = RequestId{99};
  other.labels = {"7"};
  chosen->alternatives.alternatives = {own, other};
  const std::string text = explain_text(*chosen, {request()}, 1000, kNow);
  EXPECT_THAT(text, HasSubstr("  starts now with --swap, on GPU 0\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("GPU 7")));
}

TEST(Explain, SaysHowALeaseEndedThatIsOver) {
  proto::Event made{.type = proto::EventType::kLeaseMade, .message = "L5 on GPU 0"};
  proto::Event ending{.type = proto::EventType::kLeaseEnding,
                      .message = "L5 ends: it was released by bob"};
  proto::Event gone{.type = proto::EventType::kLeaseGone, .message = "L5 is gone: GPU 0 is free"};
  made.time = ending.time = gone.time = kNow - 40min;
  EXPECT_THAT(
      ended_text(LeaseId{5}, {made, ending, gone}, kNow),
      ::testing::AllOf(HasSubstr("L5 is over since "), HasSubstr(": it was released by bob\n")));
  EXPECT_THAT(ended_text(LeaseId{5}, {made, gone}, kNow), HasSubstr(": GPU 0 is free\n"));
  EXPECT_EQ(ended_text(LeaseId{5}, {made}, kNow), "");
}

TEST(Explain, JsonHasOnlyTheLeaseAskedAbout) {
  proto::Status::Reply status;
  status.leases.resize(2);
  status.leases[0].lease_id = {5};
  status.leases[1].lease_id = {6};
  proto::ListTurns::Reply turns;
  turns.gpus.resize(2);
  turns.gpus[1].leases.emplace_back().lease_id = {6};
  const auto chosen = explained({{}, LeaseId{6}, 0}, {request()}, status, turns);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->status.leases.size(), 1u);
  EXPECT_EQ(chosen->turns.gpus.size(), 1u);
  const std::string json = explained_json(*chosen);
  EXPECT_THAT(json, HasSubstr("\"requests\": []"));
  EXPECT_THAT(json, HasSubstr("\"lease_id\": \"L6\""));
  EXPECT_THAT(json, HasSubstr("\"turns\": ["));
}

TEST(QueueArguments, AreParsedAndMistakesAreExplained) {
  const auto reserve = parse_arguments({"reserve", "-g", "2", "--for", "4h", "--force", "--short"});
  ASSERT_TRUE(reserve) << reserve.error().message;
  const auto& options = std::get<ReserveOptions>(reserve->command);
  EXPECT_EQ(options.gpus, 2);
  EXPECT_EQ(options.lasts, 4h);
  EXPECT_TRUE(options.take_over);
  EXPECT_TRUE(options.is_short);
  EXPECT_THAT(std::get<CancelOptions>(parse_arguments({"cancel", "r7", "8"})->command).requests,
              ::testing::ElementsAre(RequestId{7}, RequestId{8}));
  EXPECT_EQ(
      std::get<DrainOptions>(parse_arguments({"drain", "0,3", "--reason", "x"})->command).gpu_ids,
      (std::vector<std::string>{"0", "3"}));
  const auto run = parse_arguments({"run", "--wait", "10m", "--timeout", "2h", "--", "true"});
  EXPECT_EQ(std::get<RunOptions>(run->command).wait, 10min);
  EXPECT_EQ(std::get<RunOptions>(run->command).lasts, 2h);
  EXPECT_FALSE(parse_arguments({"run", "--wait", "10m", "--nonblock", "--", "true"}));
  EXPECT_FALSE(parse_arguments({"run", "--lease", "L5", "--memory", "8G", "--", "true"}));
  EXPECT_FALSE(parse_arguments({"run", "--timeout", "10", "--", "true"}));
  EXPECT_FALSE(parse_arguments({"cancel", "L7"}));
}

}  // namespace
}  // namespace gpurota::cli
