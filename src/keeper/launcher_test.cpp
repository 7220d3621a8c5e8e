// Keepers that are requested from systemd; a test program replaces systemd-run.
#include "keeper/launcher.h"

#include "base/fd.h"
#include "base/program_signals.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() : launcher_(dir_.file("jobs"), GPUROTA_KEEPER, GPUROTA_SYSTEMD_RUN) {
    const std::string script = dir_.file("gpurota");
    gpurota::testing::write_file(
        script, "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n");
    (void)::chmod(script.c_str(), 0755);
    orders_ = {::geteuid(), ::getpwuid(::geteuid())->pw_name, script, "/nowhere", {}};
    orders_.spec.name = "web";
    orders_.spec.workdir = "/";
    orders_.spec.environment = {{"TOKEN", "hush-hush"}};
    orders_.spec.command = {"sh", "-c",
                            "trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done"};
    (void)::setenv("STAND_IN_LOG", dir_.file("asked").c_str(), 1);
  }
  ~LauncherTest() override {
    for (const char* name : {"STAND_IN_LOG", "STAND_IN_GATE", "STAND_IN_ERROR"})
      (void)::unsetenv(name);
  }
  int wait_for(pid_t pid) {
    int status = -1;
    (void)::waitpid(pid, &status, 0);
    return status;
  }
  std::string log() { return read_log(launcher_.log_folder(kJob), std::nullopt, SIZE_MAX)->text; }

  static constexpr std::uint64_t kJob = 7;
  gpurota::testing::TempDir dir_;
  Launcher launcher_;
  jobs::KeeperOrders orders_;
};

TEST_F(LauncherTest, UnknownUnusedJobFoldersAreRemoved) {
  const auto asks = launcher_.start(kJob, orders_);
  ASSERT_TRUE(asks) << asks.error().message;
  EXPECT_EQ(wait_for(*asks), 0);
  const auto keeper = *launcher_.find_holder(kJob);
  ASSERT_TRUE(keeper);
  for (const char* name : {"jobs/8", "jobs/9", "jobs/other"}) {
    ASSERT_EQ(::mkdir(dir_.file(name).c_str(), 0700), 0);
    gpurota::testing::write_file(dir_.file(name) + "/orders", "TOKEN");
  }
  launcher_.remove_leftovers([](std::uint64_t job) { return job == 9; });
  const auto is_there = [this](const char* name) {
    return ::access(dir_.file(name).c_str(), F_OK) == 0;
  };
  EXPECT_FALSE(is_there("jobs/8"));
  EXPECT_TRUE(is_there("jobs/9/orders")) << "known";
  EXPECT_TRUE(is_there("jobs/other/orders")) << "not ours";
  EXPECT_TRUE(is_there("jobs/7/orders")) << "its keeper lives";
  while (log() != "up\n") (void)::usleep(5'000);
  (void)::kill(*keeper, SIGTERM);
  while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
}

TEST_F(LauncherTest, FindsTheKeeperThatSystemdHasStarted) {
  const auto asks = launcher_.start(kJob, orders_);
  ASSERT_TRUE(asks) << asks.error().message;
  EXPECT_EQ(wait_for(*asks), 0);
  const auto keeper = *launcher_.find_holder(kJob);
  ASSERT_TRUE(keeper);
  EXPECT_NE(*keeper, *asks);
  while (log() != "up\n") (void)::usleep(5'000);
  (void)::kill(*keeper, SIGTERM);
  while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
  EXPECT_EQ(*launcher_.read_report(kJob), (jobs::KeeperReport{false, 3, ""}));
  EXPECT_TRUE(launcher_.forget(kJob));
}

TEST_F(LauncherTest, RunHasBegunOnceItsKeeperHasTheLock) {
  orders_.spec.command = {"true"};
  for (const char* what : {"first run", "second run"}) {
    launcher_.clear(kJob);
    EXPECT_FALSE(launcher_.began(kJob)) << what;
    EXPECT_EQ(wait_for(*launcher_.start(kJob, orders_)), 0);
    EXPECT_TRUE(launcher_.began(kJob)) << what;
    while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
    EXPECT_TRUE(launcher_.began(kJob)) << what;
  }
}

TEST_F(LauncherTest, RunThatAnOlderVersionRecordedHasNotBegun) {
  orders_.spec.command = {"true"};
  EXPECT_EQ(wait_for(*launcher_.start(kJob, orders_)), 0);
  while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
  gpurota::testing::write_file(launcher_.log_folder(kJob) + "/" + jobs::kOldUnbegunFile, "");
  EXPECT_FALSE(launcher_.began(kJob));
  EXPECT_EQ(wait_for(*launcher_.start(kJob, orders_)), 0);
  EXPECT_TRUE(launcher_.began(kJob));
  while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
}

TEST_F(LauncherTest, UnitRequestShowsNoSecrets) {
  orders_.spec.command = {"true"};
  EXPECT_EQ(wait_for(*launcher_.start(kJob, orders_)), 0);
  const std::string asked = gpurota::testing::read_file(dir_.file("asked"));
  EXPECT_THAT(asked, HasSubstr("--slice=gpurota-jobs.slice"));
  EXPECT_THAT(asked, HasSubstr("--unit=gpurota-job-7-"));
  // Everybody may list units: the name that the owner gave the job is not shown.
  EXPECT_THAT(asked, HasSubstr("--description=gpurota: a job of " + orders_.user));
  EXPECT_THAT(asked, HasSubstr("--property=Delegate=yes"));
  EXPECT_THAT(asked, HasSubstr("--property=Before=gpurotad.service"));
  EXPECT_THAT(asked, Not(HasSubstr("hush")));
  while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
}

TEST_F(LauncherTest, ReportsWhySystemdDidNotStartTheUnit) {
  (void)::setenv("STAND_IN_ERROR", "Failed to connect to bus", 1);
  EXPECT_NE(wait_for(*launcher_.start(kJob, orders_)), 0);
  EXPECT_FALSE(*launcher_.find_holder(kJob));
  EXPECT_EQ(launcher_.read_report(kJob)->cannot_start,
            "systemd did not start it: Failed to connect to bus");
}

// A program that prints its signal settings replaces systemd-run and the keeper.
TEST_F(LauncherTest, StartedProcessCanBeTerminated) {
  const std::string told = dir_.file("told"), script = dir_.file("tells");
  gpurota::testing::write_file(
      script, "#!/bin/sh\nexec grep -E 'Sig(Blk|Ign)' /proc/self/status >" + told + "\n");
  (void)::chmod(script.c_str(), 0755);
  const ProgramSignals before = ProgramSignals::current();
  sigset_t all;
  (void)::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
  for (const std::string& systemd_run : {script, std::string()}) {
    Launcher launcher(dir_.file("jobs"), script, systemd_run);
    const auto started = launcher.start(kJob, orders_);
    EXPECT_TRUE(started);
    EXPECT_EQ(started ? wait_for(*started) : -1, 0);
    EXPECT_EQ(gpurota::testing::read_file(told),
              "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    (void)::unlink(told.c_str());
  }
  set_signals(before);
}

// A plain folder stands in for the control group, so only the making of the group is seen.
TEST_F(LauncherTest, TheChildEntersItsControlGroupBeforeItExecutes) {
  const std::string group = dir_.file("gpurota-keeper-job-7");
  const std::string told = dir_.file("told"), script = dir_.file("tells");
  gpurota::testing::write_file(script, "#!/bin/sh\ntest -d " + group + " && echo made >" + told);
  (void)::chmod(script.c_str(), 0755);
  Launcher launcher(dir_.file("jobs"), script);
  const auto started = launcher.start(kJob, orders_, group);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(wait_for(*started), 0);
  EXPECT_EQ(gpurota::testing::read_file(told), "made\n");
}

TEST_F(LauncherTest, WithdrawnKeeperDoesNotRun) {
  const std::string gate = dir_.file("gate");
  (void)::setenv("STAND_IN_GATE", gate.c_str(), 1);
  const auto asks = launcher_.start(kJob, orders_);
  ASSERT_TRUE(asks);
  launcher_.withdraw(kJob);
  EXPECT_FALSE(*launcher_.find_holder(kJob));
  gpurota::testing::write_file(gate, "");
  EXPECT_EQ(wait_for(*asks), 0);
  while (*launcher_.find_holder(kJob)) (void)::usleep(5'000);
  EXPECT_EQ(log(), "");
  EXPECT_NE(launcher_.read_report(kJob)->cannot_start, "");
}

}  // namespace
}  // namespace gpurota::keeper
