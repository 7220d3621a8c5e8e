// libgpurota.so as programs use it: preloaded, on the simulated driver, with a daemon that
// implements the tenant protocol.
#include "fixture.h"

#include <csignal>

namespace gpurota::interposer_test {
namespace {

using testing::read_file;

class EachLookup : public InterposerTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EachLookup, HoldsTheProgramToItsLimit) { EXPECT_EQ(run("exhaust", GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Interposer, EachLookup,
                         ::testing::Values("", "dlsym", "dlsym-old", "default", "next", "proc1",
                                           "proc2", "ptds"),
                         [](const auto& each) {
                           std::string name = *each.param == 0 ? "linked" : each.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_F(InterposerTest, DoesNothingWithoutALease) {
  auto extra = lease();
  extra["GPUROTA_LEASE"] = "";
  EXPECT_EQ(start(PROBE_LINKED, "whole_gpu", extra)->wait(), 0);
  extra["PROBE_LOOKUP"] = "proc2";
  EXPECT_EQ(start(PROBE_DYNAMIC, "whole_gpu", extra)->wait(), 0);
  EXPECT_TRUE(daemon_->hellos().empty());
}

TEST_F(InterposerTest, IdentifiesItself) {
  EXPECT_EQ(run("exhaust"), 0);
  ASSERT_EQ(daemon_->hellos().size(), 1u);
  EXPECT_EQ(daemon_->hellos()[0].lease, 12u);
  EXPECT_EQ(daemon_->hellos()[0].token, kToken);
  EXPECT_TRUE(daemon_->hellos()[0].held.empty());
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(InterposerTest, ChargesSmallAllocationsByTheBlocksTheyShare) { EXPECT_EQ(run("small"), 0); }
TEST_F(InterposerTest, ChargesPitchedMemory) { EXPECT_EQ(run("pitch"), 0); }
TEST_F(InterposerTest, ChargesManagedMemory) { EXPECT_EQ(run("managed"), 0); }
TEST_F(InterposerTest, CreditsMemoryOfADestroyedContext) {
  EXPECT_EQ(run("destroy_context"), 0);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}
TEST_F(InterposerTest, KeepsReleasedMemoryChargedWhileItIsMapped) {
  const int code = run("vmm");
  if (code == 77) GTEST_SKIP() << "the simulated driver has no virtual memory management";
  EXPECT_EQ(code, 0);
}
TEST_F(InterposerTest, ChargesPoolsByWhatTheyReserve) {
  const int code = run("pool");
  if (code == 77) GTEST_SKIP() << "the simulated driver has no memory pools";
  EXPECT_EQ(code, 0);
}
TEST_F(InterposerTest, LosesNothingBetweenThreads) { EXPECT_EQ(run("threads"), 0); }
TEST_F(InterposerTest, RefusesGpusThatAreNotOfTheLease) { EXPECT_EQ(run("foreign_gpu"), 0); }
TEST_F(InterposerTest, PreservesErrno) { EXPECT_EQ(run("errno_preserved"), 0); }

TEST_F(InterposerTest, StaysUnderItsLeaseWhenTheProgramClearsItsEnvironment) {
  EXPECT_EQ(run("environment_cleared"), 0);
}

TEST_F(InterposerTest, AForkedChildIsATenantOfItsOwn) {
  EXPECT_EQ(run("fork_before"), 0);
  EXPECT_EQ(daemon_->hellos().size(), 2u);
}

TEST_F(InterposerTest, AForkedChildNeverSpeaksOnItsParentsConnection) {
  EXPECT_EQ(run("fork_after"), 0);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(InterposerTest, NeverUsesADescriptorThatTheProgramHasTakenOver) {
  EXPECT_EQ(run("descriptors_closed"), 0);
  ASSERT_EQ(daemon_->hellos().size(), 2u);
  ASSERT_EQ(daemon_->hellos()[1].held.size(), 1u);
  EXPECT_GE(daemon_->hellos()[1].held[0].granted_bytes, 64 * kMiB);
}

TEST_F(InterposerTest, ReturnsHeadroomWhileTheProgramIsBusyElsewhere) {
  const auto program = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(program->read_line(), "ready");
  EXPECT_EQ(daemon_->recall_all(0), 64 * kMiB);
}

TEST_F(InterposerTest, HeadroomOfOneProgramIsAvailableToAnother) {
  const auto first = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(first->read_line(), "ready");
  const auto second = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(second->read_line(), "ready");
  second->write_line("go");
  EXPECT_EQ(second->read_line(), "yes");  // 64 + 64 + 128 MiB
  first->write_line("go");
  EXPECT_EQ(first->read_line(), "no");
}

TEST_F(InterposerTest, ContextsAreReservedForBeforeTheyAreMade) {
  start_daemon(256 * kMiB, 300 * kMiB);
  EXPECT_EQ(start(PROBE_LINKED, "context_only", lease())->read_line(), "no");
  start_daemon(256 * kMiB, 200 * kMiB);
  const auto program = start(PROBE_LINKED, "context_only", lease());
  EXPECT_EQ(program->read_line(), "yes");
}

TEST_F(InterposerTest, ReconnectsToARestartedDaemonWithItsMemory) {
  const auto program = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(program->read_line(), "ready");
  start_daemon();
  // The helper thread reconnects by itself, before the program makes another call.
  ASSERT_TRUE(daemon_->wait_for_hellos(1));
  ASSERT_EQ(daemon_->hellos()[0].held.size(), 1u);
  EXPECT_GE(daemon_->hellos()[0].held[0].granted_bytes, 64 * kMiB);
  EXPECT_EQ(daemon_->hellos()[0].held[0].contexts, 1u);
  program->write_line("go");
  EXPECT_EQ(program->read_line(), "yes");
}

// Before it ended, the daemon may have granted the returned memory to another process. The next
// daemon accepts the report of that process too.
TEST_F(InterposerTest, MemoryReturnedWithALostRequestIsNotHeld) {
  const auto program = start(PROBE_LINKED, "step_with_slack", lease());
  ASSERT_EQ(program->read_line(), "ready");
  ASSERT_EQ(daemon_->granted(0), 64 * kMiB);
  daemon_->misbehave(Mischief::kHangUpOnGrow);
  program->write_line("go");
  EXPECT_EQ(program->read_line(), "yes");
  ASSERT_EQ(daemon_->hellos().size(), 2u);
  ASSERT_EQ(daemon_->hellos()[1].held.size(), 1u);
  EXPECT_EQ(daemon_->hellos()[1].held[0].granted_bytes, 8 * kMiB);
}

TEST_F(InterposerTest, WithoutADaemonFreesWorkAndHeadroomIsUsed) {
  const auto program = start(PROBE_LINKED, "free_after", lease());
  ASSERT_EQ(program->read_line(), "ready");
  daemon_.reset();
  program->write_line("go");
  EXPECT_EQ(program->read_line(), "done");
  EXPECT_EQ(program->wait(), 0);  // without a SIGPIPE
}

TEST_F(InterposerTest, WithoutADaemonGrowthIsRefusedAfterABoundedWait) {
  auto extra = lease();
  extra["GPUROTA_WAIT_MS"] = "200";
  const auto program = start(PROBE_LINKED, "step", extra);
  ASSERT_EQ(program->read_line(), "ready");
  daemon_.reset();
  program->write_line("go");
  EXPECT_EQ(program->read_line(), "no");
}

TEST_F(InterposerTest, WithoutADaemonThereIsNoContext) {
  daemon_.reset();
  auto extra = lease();
  extra["GPUROTA_WAIT_MS"] = "100";
  EXPECT_EQ(start(PROBE_LINKED, "context_only", extra)->read_line(), "no");
}

TEST_F(InterposerTest, ARefusedProgramGetsNoMemory) {
  daemon_->misbehave(Mischief::kRefuseHello, GPUROTA_REFUSED_LEASE);
  EXPECT_EQ(start(PROBE_LINKED, "context_only", lease())->read_line(), "no");
  daemon_->misbehave(Mischief::kRefuseHello, GPUROTA_REFUSED_VERSION);
  EXPECT_EQ(start(PROBE_LINKED, "context_only", lease())->read_line(), "no");
}

TEST_F(InterposerTest, RefusalIsExplainedAndNotTakenForAMissingDaemon) {
  daemon_->misbehave(Mischief::kRefuseHello, GPUROTA_REFUSED_BUSY);
  auto extra = lease();
  extra["GPUROTA_DEBUG"] = dir_.file("debug.log");
  extra["GPUROTA_WAIT_MS"] = "3600000";
  EXPECT_EQ(start(PROBE_LINKED, "context_only", extra)->read_line(), "no") << "it does not wait";
  const std::string text = read_file(dir_.file("debug.log"));
  EXPECT_NE(text.find("as many processes as the site allows"), std::string::npos) << text;
  EXPECT_EQ(text.find("away"), std::string::npos) << text;
}

TEST_F(InterposerTest, IsServedByANewerDaemon) {
  daemon_->misbehave(Mischief::kNewerDaemon);
  EXPECT_EQ(run("exhaust"), 0);
  const auto program = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(program->read_line(), "ready");
  EXPECT_EQ(daemon_->recall_all(0), 64 * kMiB) << "a message it does not know made it deaf";
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(InterposerTest, IsServedByAnOlderDaemon) {
  daemon_->misbehave(Mischief::kOldDaemon);
  EXPECT_EQ(run("exhaust"), 0);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

class BadAnswers : public InterposerTest, public ::testing::WithParamInterface<Mischief> {};

// Each bad answer ends the connection. The program reconnects, reports the memory that it holds,
// and gets the memory that it asked for.
TEST_P(BadAnswers, AreSurvived) {
  const auto program = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(program->read_line(), "ready");
  daemon_->misbehave(GetParam());
  program->write_line("go");
  EXPECT_EQ(program->read_line(), "yes");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

INSTANTIATE_TEST_SUITE_P(Interposer, BadAnswers,
                         ::testing::Values(Mischief::kHangUpOnGrow, Mischief::kGarbageGrown,
                                           Mischief::kShortGrown, Mischief::kWrongSequence,
                                           Mischief::kHugeGrown));

TEST_F(InterposerTest, GarbageInsteadOfAWelcomeCountsAsAMissingDaemon) {
  auto extra = lease();
  extra["GPUROTA_WAIT_MS"] = "200";
  for (const Mischief mischief : {Mischief::kGarbageWelcome, Mischief::kForeignWelcome}) {
    daemon_->misbehave(mischief);
    EXPECT_EQ(start(PROBE_LINKED, "context_only", extra)->read_line(), "no");
  }
}

TEST_F(InterposerTest, UnknownFunctionsArePassedOnCountedAndNamed) {
  auto extra = lease();
  extra["LD_LIBRARY_PATH"] = PROBE_NEWER_DRIVER;
  Program program({foreign(PROBE_NEWER)}, extra);
  ASSERT_EQ(program.read_line(), "ready");
  EXPECT_EQ(daemon_->use(0).unhooked, 14u);  // looked up before the program was a tenant
  const std::vector<std::string> names = daemon_->unhooked_names();
  ASSERT_EQ(names.size(), GPUROTA_PAGE_NAMES);
  EXPECT_EQ(names[0], "cuMemAlloc_v9");
  EXPECT_EQ(names[1], "cuMemTeleport");
  EXPECT_EQ(names[2], "cuMemAlloc");
  EXPECT_EQ(names[7], "cuNew4");
  program.write_line("");
  EXPECT_EQ(program.wait(), 0);
}

TEST_F(InterposerTest, ExplainsItselfWhereDebugSays) {
  auto extra = lease();
  extra["GPUROTA_DEBUG"] = dir_.file("debug.log");
  extra["PROBE_LOOKUP"] = "proc2";
  EXPECT_EQ(start(PROBE_DYNAMIC, "exhaust", extra)->wait(), 0);
  const std::string text = read_file(dir_.file("debug.log"));
  EXPECT_NE(text.find("cuGetProcAddress_v2: ours"), std::string::npos);
  EXPECT_NE(text.find("cuMemAlloc, version 12000: ours"), std::string::npos);
  EXPECT_NE(text.find("limit 268435456 bytes"), std::string::npos);
  EXPECT_NE(text.find("granted"), std::string::npos);
  EXPECT_NE(text.find("connected to"), std::string::npos);
  EXPECT_NE(text.find("refused"), std::string::npos);
}

// Under a limit, the driver's own conformance programs must pass as they do without one.
class DriverUnderALimit : public InterposerTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(DriverUnderALimit, AnswersAsItDoesWithoutALease) {
  start_daemon(4096 * kMiB);
  Program probe({foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE, "--",
                 std::string(PROBE_DRIVER_CHECKS) + "/driver_" + GetParam() + "_check"},
                lease());
  int passed = 0;
  for (std::string line; !(line = probe.read_line()).empty();) {
    EXPECT_NE(line.substr(0, 4), "FAIL") << line;
    passed += line.substr(0, 3) == "ok " ? 1 : 0;
  }
  EXPECT_GT(passed, 2);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

INSTANTIATE_TEST_SUITE_P(Interposer, DriverUnderALimit,
                         ::testing::Values("copy", "pool", "stream", "graph", "capture"));

TEST_F(InterposerTest, SurvivesAKillOfTheProgramInTheMiddle) {
  auto program = start(PROBE_LINKED, "step", lease());
  ASSERT_EQ(program->read_line(), "ready");
  program->signal(SIGKILL);
  EXPECT_EQ(program->wait(), 128 + SIGKILL);
  EXPECT_EQ(run("exhaust"), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
