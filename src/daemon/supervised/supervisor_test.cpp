// Two processes stand in for keepers: one holds a run's lock, the other ends at once.
#include "daemon/supervised/supervisor.h"

#include "daemon/gpus/fake_world_test.h"
#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kRun = 7;
constexpr uid_t kAlice = 1000;

class SupervisorTest : public FakeWorldTest, public Supervisor::Policy {
 protected:
  SupervisorTest() {
    entry.id = 1;
    entry.uid = kAlice;
    entry.user = "alice";
    entry.spec.name = "web";
    entry.spec.command = {"true"};
    processes.set_user(kAlice, "alice");
    (void)::mkdir(dir.file("jobs").c_str(), 0700);
    (void)::mkdir(dir.file("jobs/7").c_str(), 0700);
  }
  ~SupervisorTest() override { end_holder(); }

  void on_handed_over(std::uint64_t run) override { handed_over.push_back(run); }
  void on_over(std::uint64_t run) override { over.push_back(run); }
  Result<void> store(std::uint64_t id) override {
    stored.push_back(id);
    return disk_is_full ? fail(Code::kIo, "the disk is full") : Result<void>();
  }

  // Starts a process, `holder`, that holds the lock of the run.
  void hold_lock() {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    holder = ::fork();
    if (holder == 0) {
      const int fd = ::open(dir.file("jobs/7/lock").c_str(), O_RDWR | O_CREAT, 0600);
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      (void)::fcntl(fd, F_SETLK, &lock);
      (void)!::write(ready[1], "1", 1);
      for (;;) ::pause();
    }
    char there = 0;
    ASSERT_EQ(::read(ready[0], &there, 1), 1);
    for (const int fd : ready) (void)::close(fd);
  }
  void end_holder() {
    if (holder <= 0) return;
    (void)::kill(holder, SIGKILL);
    (void)::waitpid(holder, nullptr, 0);
    holder = 0;
  }
  void spawn_holder() {
    testing::FakeProcesses::Spawn spawn;
    spawn.pid = holder;
    (void)processes.spawn(spawn);
  }

  Supervisor::Parts parts(const std::string& keeper, uid_t own_uid) {
    return {loop, processes, budgets, programs.get(), keeper, "", "/bin/true", dir.path(), own_uid};
  }

  testing::TempDir dir;
  UserBudgets budgets{{config, 800, 0, [](uid_t) { return false; }, [this] { return loop.now(); }}};
  std::unique_ptr<store::SqliteStore> programs = std::move(*store::SqliteStore::open_in_memory());
  Supervised entry;
  std::vector<std::uint64_t> handed_over, over, stored;
  bool disk_is_full = false;
  pid_t holder = 0;
  Supervisor supervisor{parts("/bin/true", 0), ports::ProgramKind::kJob, dir.file("jobs"), *this};
};

TEST_F(SupervisorTest, TakesOverTheLockHolderAndNoticesItsEnd) {
  hold_lock();
  spawn_holder();
  ASSERT_TRUE(*supervisor.take_up(kRun));
  EXPECT_TRUE(supervisor.is_on(kRun));
  EXPECT_TRUE(supervisor.is_kept_by(kRun, holder));
  EXPECT_FALSE(supervisor.is_kept_by(kRun, holder + 1));
  supervisor.end(kRun);
  EXPECT_THAT(processes.signals(), ElementsAre(std::pair(holder, SIGTERM)));
  end_holder();
  loop.run_until_idle();
  EXPECT_THAT(over, ElementsAre(kRun));
  EXPECT_FALSE(supervisor.is_on(kRun));
}

TEST_F(SupervisorTest, KeeperWithoutItsLockWillNotRun) {
  testing::write_file(dir.file("jobs/7/orders"), "TOKEN");
  EXPECT_FALSE(*supervisor.take_up(kRun));
  EXPECT_NE(::access(dir.file("jobs/7/orders").c_str(), F_OK), 0);
  EXPECT_FALSE(supervisor.is_on(kRun));
}

TEST_F(SupervisorTest, RunWithAnUnreadableKeeperMayLive) {
  hold_lock();
  processes.set_short(true);
  EXPECT_FALSE(supervisor.take_up(kRun)) << "it must not be started a second time";
  ASSERT_TRUE(supervisor.launch(kRun, entry, entry.spec));
  loop.run_until_idle();
  EXPECT_TRUE(supervisor.is_on(kRun));
  EXPECT_THAT(over, IsEmpty());
  processes.set_short(false);
  spawn_holder();
  loop.advance(kReadRetryPeriod);
  EXPECT_THAT(handed_over, ElementsAre(kRun));
  EXPECT_TRUE(supervisor.is_kept_by(kRun, holder));
  EXPECT_THAT(over, IsEmpty());
}

TEST_F(SupervisorTest, AKeeperThatCannotBeWatchedIsEnded) {
  ASSERT_TRUE(supervisor.launch(kRun, entry, entry.spec));
  EXPECT_TRUE(supervisor.is_on(kRun));
  loop.run_until_idle();
  EXPECT_THAT(over, ElementsAre(kRun));
  EXPECT_FALSE(supervisor.is_on(kRun));
}

TEST_F(SupervisorTest, UnstoredChangeIsStoredLater) {
  disk_is_full = true;
  supervisor.settle(entry);
  EXPECT_THAT(supervisor.check_stored(1, "web").error().message, HasSubstr("not stored"));
  supervisor.store_again();
  disk_is_full = false;
  supervisor.store_again();
  supervisor.store_again();
  EXPECT_TRUE(supervisor.check_stored(1, "web"));
  EXPECT_THAT(stored, ElementsAre(1, 1, 1));
}

TEST_F(SupervisorTest, RemovedProgramLeavesNothing) {
  ASSERT_EQ(*supervisor.next_id(), 1U);
  ASSERT_TRUE(programs->save_jobs({{{1, kAlice, "alice", encode(entry.spec)}, "", "boot"}}));
  testing::write_file(dir.file("jobs/7/orders"), "TOKEN");
  ASSERT_TRUE(supervisor.remove(entry, {kRun}));
  EXPECT_TRUE(programs->load_jobs()->empty());
  EXPECT_NE(::access(dir.file("jobs/7").c_str(), F_OK), 0);
}

TEST_F(SupervisorTest, CountsTheLogsOfAUserTogether) {
  config.job_log_size_per_user = mib(40);
  EXPECT_TRUE(supervisor.check_logs(kAlice, 0, mib(32).count()));
  supervisor.count_logs(entry, mib(32));
  const auto more = supervisor.check_logs(kAlice, 0, mib(16).count());
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("job_log_size_per_user"));
  EXPECT_TRUE(supervisor.check_logs(kAlice, mib(16).count(), mib(16).count()));
  config.job_log_size_per_user = mib(8);
  EXPECT_TRUE(supervisor.check_logs(kAlice, mib(16).count(), mib(16).count())) << "it is no more";
}

TEST_F(SupervisorTest, WithoutAKeeperNothingIsRun) {
  Supervisor bare{parts("", 0), ports::ProgramKind::kFiller, dir.file("fillers"), *this};
  EXPECT_THAT(bare.check_owner(kAlice).error().message, HasSubstr("no fillers: gpurota-keeper"));
}

TEST_F(SupervisorTest, RootsDaemonRunsCommandsOfUsersWithAKnownAccount) {
  EXPECT_TRUE(supervisor.check_owner(kAlice));
  const auto refused = supervisor.check_owner(kAlice + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("there is no account with uid 1001, so no job"));
  processes.set_user(kAlice + 1, "bob");
  EXPECT_TRUE(supervisor.check_owner(kAlice + 1)) << "the directory has answered";
}

TEST_F(SupervisorTest, UnprivilegedDaemonRunsCommandsOfItsOwnUser) {
  Supervisor own{parts("/bin/true", 1002), ports::ProgramKind::kJob, dir.file("own"), *this};
  EXPECT_TRUE(own.check_owner(1002));
  const auto refused = own.check_owner(kAlice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDenied);
  EXPECT_THAT(refused.error().message, HasSubstr("runs as uid 1002 and cannot run a job"));
  EXPECT_FALSE(own.check_owner(0)) << "not even root's";
}

}  // namespace
}  // namespace gpurota::daemon
