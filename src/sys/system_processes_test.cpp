#include "sys/system_processes.h"

#include "base/fd.h"
#include "base/proc_stat.h"
#include "testing/fake_event_loop.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using testing::FakeEventLoop;

class SystemProcessesTest : public ::testing::Test {
 protected:
  ~SystemProcessesTest() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  // Starts a child that waits to be killed. On a byte from go_ it forks a child that leaves its
  // session.
  pid_t start() {
    if (!go_) {
      int ends[2];
      EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
      wait_ = Fd(ends[0]);
      go_ = Fd(ends[1]);
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char c = 0;
      if (::read(wait_.get(), &c, 1) == 1 && ::fork() == 0) ::setsid();
      for (;;) ::pause();
    }
    children_.push_back(pid);
    return pid;
  }
  bool removed(const std::string& group) {
    std::optional<Result<void>> result;
    processes_.cgroups().remove(group, [&](const Result<void>& removal) { result = removal; });
    return loop_.run_until([&] { return result.has_value(); }) && *result;
  }
  void reap_killed(pid_t pid) {
    ::kill(pid, SIGKILL);
    reap(pid);
  }
  void reap(pid_t pid) {
    ::waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }

  std::vector<pid_t> children_;
  Fd wait_, go_;
  FakeEventLoop loop_;
  SystemProcesses processes_{loop_};
};

TEST_F(SystemProcessesTest, CountsThePrivateMemoryOfAProcess) {
  const auto before = processes_.private_memory(::getpid());
  ASSERT_TRUE(before) << before.error().message;
  std::vector<char> memory(mib(256).count(), 1);
  const auto after = processes_.private_memory(::getpid());
  ASSERT_TRUE(after);
  EXPECT_GE(*after, *before + mib(192)) << memory.back();
  EXPECT_EQ(processes_.private_memory(0x7ffffff0).error().code, Code::kGone);
}

TEST_F(SystemProcessesTest, ASignalIsHandledByAHandlerOrBlocked) {
  // Another test of this program may have left the signal blocked.
  sigset_t both, before_all;
  ::sigemptyset(&both);
  ::sigaddset(&both, SIGUSR1);
  ::sigaddset(&both, SIGUSR2);
  ASSERT_EQ(::sigprocmask(SIG_UNBLOCK, &both, &before_all), 0);
  (void)::signal(SIGUSR1, SIG_DFL);
  EXPECT_FALSE(processes_.handles_signal(::getpid(), SIGUSR1));
  (void)::signal(SIGUSR1, [](int) {});
  EXPECT_TRUE(processes_.handles_signal(::getpid(), SIGUSR1));
  EXPECT_FALSE(processes_.handles_signal(::getpid(), SIGUSR2));
  (void)::signal(SIGUSR1, SIG_DFL);
  sigset_t mask, before;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGUSR2);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &mask, &before), 0);
  EXPECT_TRUE(processes_.handles_signal(::getpid(), SIGUSR2));
  ASSERT_EQ(::sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_FALSE(processes_.handles_signal(0, SIGUSR1));
  ASSERT_EQ(::sigprocmask(SIG_SETMASK, &before_all, nullptr), 0);
}

TEST_F(SystemProcessesTest, ReportsDeathOnceEvenOfAZombie) {
  const pid_t pid = start();
  auto handle = processes_.open({pid, read_proc_stat(pid)->start_ticks});
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_TRUE((*handle)->alive());
  int deaths = 0;
  auto first = processes_.on_death(**handle, [&] { ++deaths; });
  auto second = processes_.on_death(**handle, [&] { ++deaths; });
  auto cancelled = processes_.on_death(**handle, [&] { deaths += 100; });
  ASSERT_TRUE(first && second && cancelled);
  cancelled->reset();
  ASSERT_TRUE((*handle)->send_signal(SIGKILL));
  EXPECT_TRUE(loop_.run_until([&] { return deaths == 2; }));
  loop_.run_until_idle();
  EXPECT_EQ(deaths, 2);
  EXPECT_FALSE((*handle)->alive());
  EXPECT_TRUE(processes_.read_info(pid)->zombie);
  reap(pid);
  EXPECT_FALSE((*handle)->alive());
  EXPECT_TRUE((*handle)->send_signal(SIGKILL)) << "gone is what the signal was for";
  EXPECT_EQ(processes_.read_info(pid).error().code, Code::kGone);
  EXPECT_EQ(processes_.open({pid, 1}).error().code, Code::kGone);
}

TEST_F(SystemProcessesTest, SourceMayOutliveTheHandleAndEndInItsCallback) {
  const pid_t pid = start();
  auto handle = processes_.open(processes_.read_info(pid)->id());
  bool died = false;
  ports::EventLoop::SourcePtr source;
  source = *processes_.on_death(**handle, [&] {
    source.reset();
    died = true;
  });
  handle->reset();
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(loop_.run_until([&] { return died; }));
}

TEST_F(SystemProcessesTest, AnotherStartTimeIsAnotherProcess) {
  const pid_t pid = start();
  ports::ProcessId id = processes_.read_info(pid)->id();
  EXPECT_TRUE(processes_.open(id));
  EXPECT_TRUE(ports::is_still(processes_, id));
  ++id.start_ticks;
  EXPECT_EQ(processes_.open(id).error().code, Code::kGone);
  EXPECT_FALSE(ports::is_still(processes_, id));
}

TEST_F(SystemProcessesTest, ReadsTheDetailsOfAProcess) {
  const pid_t pid = start();
  const auto info = processes_.read_info(pid);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->pid, pid);
  EXPECT_EQ(info->parent, ::getpid());
  EXPECT_EQ(info->uid, ::getuid());
  EXPECT_FALSE(info->zombie);
  EXPECT_EQ(processes_.command_of(pid).error().code, Code::kUnavailable) << "nobody waits for it";
  EXPECT_TRUE(loop_.run_until([&] { return processes_.command_of(pid).has_value(); }));
  EXPECT_NE(processes_.command_of(pid)->front().find("sys_test"), std::string::npos);
  const auto all = *processes_.read_all();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.pid == pid; }));
  EXPECT_EQ(processes_.command_of(0x7ffffff0).error().code, Code::kGone);
}

TEST_F(SystemProcessesTest, ReplacedProgramKeepsItsPath) {
  const testing::TempDir folder;
  const std::string program = folder.path() + "/conmon";
  std::filesystem::copy_file("/bin/sleep", program);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl(program.c_str(), "conmon", "60", nullptr);
    ::_exit(127);
  }
  children_.push_back(pid);
  EXPECT_TRUE(loop_.run_until([&] { return processes_.executable_of(pid) == program; }));
  std::filesystem::remove(program);
  EXPECT_EQ(processes_.executable_of(pid), program);
}

TEST_F(SystemProcessesTest, KnowsTheBootAndUsersNames) {
  EXPECT_EQ(processes_.boot_id().size(), 36u);
  EXPECT_EQ(processes_.user_name(0), "root");
  EXPECT_EQ(processes_.user_name(4123456789u), "4123456789");
}

TEST_F(SystemProcessesTest, ACgroupHoldsAndEndsAllThatIsStartedInIt) {
  const pid_t pid = start();
  const std::string name = "gpurota-test-" + std::to_string(::getpid());
  const auto made = processes_.cgroups().make_below(pid, name);
  if (!made && made.error().code == Code::kUnavailable) {
    GTEST_SKIP() << "needs a writable cgroup v2: " << made.error().message;
  }
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(processes_.cgroups().members(*made)->empty());
  std::optional<Result<void>> moved;
  processes_.cgroups().enter(*made, pid, [&](const Result<void>& result) { moved = result; });
  ASSERT_TRUE(loop_.run_until([&] { return moved.has_value(); }));
  ASSERT_TRUE(*moved) << moved->error().message;
  EXPECT_EQ(processes_.cgroups().of(pid), *made);
  EXPECT_EQ(processes_.cgroups().of(::getpid()) + "/" + name, *made);
  EXPECT_EQ(*processes_.cgroups().members(*made), std::vector<pid_t>{pid});

  ASSERT_EQ(::write(go_.get(), "x", 1), 1);
  EXPECT_TRUE(loop_.run_until([&] { return processes_.cgroups().members(*made)->size() == 2; }))
      << "what is forked in it is in it";
  const auto shared = processes_.cgroups().make_below(start(), name);
  EXPECT_EQ(shared.error().code, Code::kLimit) << "in use";
  EXPECT_FALSE(removed(*made)) << "not empty";
  ASSERT_TRUE(processes_.cgroups().kill(*made));
  reap(pid);
  EXPECT_TRUE(loop_.run_until([&] { return processes_.cgroups().members(*made)->empty(); }));
  EXPECT_TRUE(removed(*made));
  EXPECT_TRUE(processes_.cgroups().members(*made)->empty());
  EXPECT_TRUE(removed(*made));

  auto other = std::make_unique<SystemProcesses>(loop_);
  const pid_t moved_pid = start();
  const auto left = other->cgroups().make_below(moved_pid, name);
  const auto second = other->cgroups().make_below(moved_pid, name + "-second");
  ASSERT_TRUE(left && second);
  const auto never = [](const Result<void>&) { FAIL() << "after the destruction"; };
  other->cgroups().enter(*second, moved_pid, never);
  other->cgroups().remove(*left, never);
  other.reset();
  EXPECT_NE(::access(left->c_str(), F_OK), 0) << "a daemon that ends leaves no group behind";
  reap_killed(moved_pid);
  EXPECT_TRUE(loop_.run_until([&] { return processes_.cgroups().members(*second)->empty(); }));
  EXPECT_TRUE(removed(*second));
}

TEST_F(SystemProcessesTest, ChildHasTheNameGivenByItsParent) {
  const auto here = processes_.read_info(::getpid());
  ASSERT_TRUE(here);
  EXPECT_EQ(*processes_.child_called(here->id(), 4711), 4711) << "one pid namespace: no question";

  // A process that is pid 1 in its own pid namespace and has many children; it reports the first
  // and the last.
  int told[2];
  ASSERT_EQ(::pipe2(told, O_CLOEXEC), 0);
  const pid_t maker = ::fork();
  if (maker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // and with it the whole namespace
      pid_t numbers[2] = {};
      for (int i = 0; i < 100; ++i) {
        const pid_t number = ::fork();
        if (number == 0) {
          for (;;) ::pause();
        }
        numbers[i == 0 ? 0 : 1] = number;
      }
      (void)!::write(told[1], numbers, sizeof numbers);
    }
    for (;;) ::pause();
  }
  children_.push_back(maker);
  ::close(told[1]);
  const Fd from(told[0]);
  pid_t numbers[2] = {};
  if (::read(from.get(), numbers, sizeof numbers) != sizeof numbers) {
    GTEST_SKIP() << "needs root: it makes a pid namespace";
  }
  const auto all = processes_.read_all();
  const auto child_of = [&](pid_t parent) {
    return std::find_if(all->begin(), all->end(),
                        [&](const auto& process) { return process.parent == parent; });
  };
  const auto first = child_of(maker);
  ASSERT_NE(first, all->end());
  const auto oldest = child_of(first->pid);
  ASSERT_NE(oldest, all->end());
  const auto newest = processes_.child_called(first->id(), numbers[1]);
  ASSERT_TRUE(newest) << newest.error().message;
  EXPECT_NE(*newest, numbers[1]);
  EXPECT_EQ(processes_.read_info(*newest)->parent, first->pid);
  EXPECT_EQ(processes_.child_called(first->id(), numbers[1] + 1).error().code, Code::kGone);
  EXPECT_EQ(processes_.child_called(first->id(), *newest).error().code, Code::kGone);
  // The oldest child is not found: a process may have ten thousand children, and looking up each
  // takes time on the state thread.
  EXPECT_EQ(processes_.child_called(first->id(), numbers[0]).error().code, Code::kGone);
}

}  // namespace
}  // namespace gpurota::sys
