// Tests of the text of `gpurota explain` and `gpurota turns` about swap leases, and of the options
// about turns.
#include "cli/args/args.h"
#include "cli/turns/turns_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow{1700000000s};

// L1 of alice waits while L2 of bob has the turn.
proto::ListTurns::Reply two_leases() {
  proto::ListTurns::Reply reply;
  proto::TurnGpu& gpu = reply.gpus.emplace_back();
  gpu.mode = "auto";
  gpu.takes_turns = true;
  gpu.holder = LeaseId{2};
  gpu.waiting = {LeaseId{1}};
  for (const std::uint64_t id : {1u, 2u}) {
    proto::TurnLease& lease = gpu.leases.emplace_back();
    lease.lease_id = {id};
    lease.user = id == 1 ? "alice" : "bob";
    lease.phase = id == 1 ? "waiting" : "holding";
    lease.waits_for = id == 1 ? "its turn" : "nothing";
    lease.quantum_ms = 5000;
    lease.limit_bytes = gib(20);
    lease.wired_bytes = mib(512);
  }
  gpu.leases[0].resident_bytes = gib(4);
  gpu.leases[0].out_bytes = gib(12);
  gpu.leases[0].behind = LeaseId{2};
  gpu.leases[0].position = 1;
  gpu.leases[0].earliest = kNow + 3200ms;
  return reply;
}

TEST(ExplainTurns, SaysWhoHasTheTurnForHowLongAndWhereTheMemoryIs) {
  const std::string text = explain_turns(two_leases(), LeaseId{1}, kNow);
  EXPECT_THAT(text,
              HasSubstr("GPU 0: waits for its turn, and is next; the turn is held by L2 of bob, "
                        "for 3.2 s more at most"));
  EXPECT_THAT(text, HasSubstr("4 GiB are in GPU memory, 12 GiB in host memory, 512 MiB cannot"));
  EXPECT_THAT(text,
              HasSubstr("last 5.0 s (chosen so that moving memory takes little of the time)"));
}

TEST(ExplainTurns, MemoryBeingRestoredIsShownAsMoving) {
  auto reply = two_leases();
  reply.gpus[0].leases[0].coming_bytes = gib(3);
  EXPECT_THAT(explain_turns(reply, LeaseId{1}, kNow),
              HasSubstr("4 GiB are in GPU memory, 3 GiB are being moved back, 12 GiB in host"));
  EXPECT_THAT(turns_text(reply, {}, kNow), HasSubstr("3 GiB coming"));
}

TEST(ExplainTurns, HolderSeesTheNextLease) {
  EXPECT_THAT(explain_turns(two_leases(), LeaseId{2}, kNow),
              HasSubstr("it has the turn; L1 of alice is next"));
}

TEST(ExplainTurns, StoppedProcessIsNamedWithTheRemedy) {
  auto reply = two_leases();
  reply.gpus[0].leases[0].waits_for = "a process of its own that is stopped";
  reply.gpus[0].leases[0].pid = 4711;
  EXPECT_THAT(explain_turns(reply, LeaseId{1}, kNow), HasSubstr("kill -CONT 4711"));
}

TEST(ExplainTurns, LeaseBlockedByAStoppedProcessShowsOwnerAndDeadline) {
  auto reply = two_leases();
  proto::TurnLease& waits = reply.gpus[0].leases[0];
  waits.waits_for = "memory that a stopped process holds";
  waits.position = 0;
  waits.behind = LeaseId{2};
  waits.earliest = kNow + 90s;
  EXPECT_THAT(
      explain_turns(reply, LeaseId{1}, kNow),
      HasSubstr("it belongs to L2 of bob, which is ended in 90.0 s unless it continues first"));
}

TEST(ExplainTurns, WhileAllFitsNobodyWaits) {
  auto reply = two_leases();
  reply.gpus[0].takes_turns = false;
  const std::string text = explain_turns(reply, LeaseId{2}, kNow);
  EXPECT_THAT(text, HasSubstr("everything fits, so"));
  EXPECT_THAT(text, Not(HasSubstr("turns last")));
}

TEST(ExplainTurns, AFillerThatWasMovedOutWaitsAlthoughNoTurnsAreTaken) {
  auto reply = two_leases();
  reply.gpus[0].takes_turns = false;
  reply.gpus[0].leases[0].waits_for = "its GPU not to be needed";
  EXPECT_THAT(explain_turns(reply, LeaseId{1}, kNow), HasSubstr("waits for its GPU not to be"));
}

TEST(ExplainTurns, LeaseWithoutTurnsHasNoText) {
  EXPECT_EQ(explain_turns(two_leases(), LeaseId{3}, kNow), "");
}

TEST(ExplainTurns, LeaseAboveItsSoftLimitIsMarked) {
  auto reply = two_leases();
  reply.gpus[0].leases[0].soft_limit_bytes = gib(10);
  EXPECT_THAT(explain_turns(reply, LeaseId{1}, kNow), Not(HasSubstr("soft limit")));
  reply.gpus[0].leases[0].above_soft_limit = true;
  EXPECT_THAT(
      explain_turns(reply, LeaseId{1}, kNow),
      HasSubstr("above its soft limit of 10 GiB: leases that are not above theirs go first"));
  EXPECT_THAT(turns_text(reply, {}, kNow), HasSubstr("above its soft limit"));
}

TEST(TurnsText, QuantumSetForALeaseIsMarkedWithAStar) {
  auto reply = two_leases();
  EXPECT_THAT(turns_text(reply, {}, kNow), Not(HasSubstr("5.0 s*")));
  reply.gpus[0].leases[0].own_quantum_ms = 5000;
  EXPECT_THAT(turns_text(reply, {}, kNow), HasSubstr("5.0 s*"));
  EXPECT_THAT(explain_turns(reply, LeaseId{1}, kNow), HasSubstr("as set for this lease"));
}

template <class Options>
Options options_of(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? std::get<Options>(arguments->command) : Options();
}

std::string refused(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_FALSE(arguments);
  return arguments ? "" : arguments.error().message;
}

TEST(TurnsArguments, ALeaseCanHaveAQuantumAndANewPriority) {
  EXPECT_EQ(options_of<RunOptions>({"run", "--swap", "--quantum", "5s", "--", "a"}).quantum, "5s");
  const auto update = options_of<UpdateOptions>({"update", "L1", "--priority", "low"});
  EXPECT_EQ(update.priority, -10);
  EXPECT_EQ(options_of<UpdateOptions>({"update", "L1", "--quantum=auto"}).quantum, "auto");
  EXPECT_THAT(refused({"run", "--quantum", "5s", "--", "a"}), HasSubstr("--swap"));
  EXPECT_THAT(refused({"run", "--lease", "L1", "--quantum", "5s", "--", "a"}), HasSubstr("--swap"));
  EXPECT_THAT(refused({"update", "L1", "--priority", "urgent"}), HasSubstr("high, normal, low"));
  EXPECT_THAT(refused({"update", "L1"}), HasSubstr("--priority"));
}

TEST(TurnsArguments, ASwapLeaseCanHaveASoftLimitWithoutALimit) {
  const auto run = options_of<RunOptions>({"run", "--swap", "--soft-limit", "50%", "--", "a"});
  EXPECT_EQ(run.soft_limit, (SizeSpec{Bytes(), 50}));
}

TEST(ExplainArguments, UnknownNameIsReportedWithTheKnownOnes) {
  const std::string message = refused({"explain", "non sense"});
  EXPECT_THAT(message, HasSubstr("'non sense' is neither a request (R7"));
  for (const char* hint : {"R7", "L12", "gpurota queue", "gpurota status", "gpurota job show"}) {
    EXPECT_THAT(message, HasSubstr(hint));
  }
  EXPECT_EQ(options_of<ExplainOptions>({"explain", "train7"}).name, "train7");
  EXPECT_EQ(options_of<ExplainOptions>({"explain", "l12"}).lease, LeaseId{12});
  EXPECT_EQ(options_of<ExplainOptions>({"explain", "r7"}).request, RequestId{7});
  EXPECT_EQ(options_of<ExplainOptions>({"explain", "7"}).request, RequestId{7});
}

}  // namespace
}  // namespace gpurota::cli
