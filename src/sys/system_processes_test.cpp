#include "sys/system_processes.h"

#include "base/fd.h"
#include "base/proc_stat.h"
#include "testing/fake_event_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include <fcntl.h>
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
  // A child that waits to be killed. On a byte from go_ it forks a child that leaves its session.
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
  void reap(pid_t pid) {
    ::waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }

  std::vector<pid_t> children_;
  Fd wait_, go_;
  FakeEventLoop loop_;
  SystemProcesses processes_{loop_};
};

TEST_F(SystemProcessesTest, TellsOfADeathOnceEvenWhileItIsAZombie) {
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

TEST_F(SystemProcessesTest, TheHandleMayGoBeforeAndTheSourceInTheCallback) {
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

TEST_F(SystemProcessesTest, ReadsWhatAProcessIs) {
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

TEST_F(SystemProcessesTest, KnowsTheBootAndUsersNames) {
  EXPECT_EQ(processes_.boot_id().size(), 36u);
  EXPECT_EQ(processes_.user_name(0), "root");
  EXPECT_EQ(processes_.user_name(4123456789u), "4123456789");
}

TEST_F(SystemProcessesTest, ACgroupHoldsAndEndsAllThatIsStartedInIt) {
  const pid_t pid = start();
  const std::string name = "gpurota-test-" + std::to_string(::getpid());
  const auto made = processes_.make_child_cgroup(pid, name);
  if (!made && made.error().code == Code::kUnavailable) {
    GTEST_SKIP() << "needs a writable cgroup v2: " << made.error().message;
  }
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(processes_.cgroup_of(pid), *made);
  EXPECT_EQ(processes_.cgroup_of(::getpid()) + "/" + name, *made);
  EXPECT_EQ(*processes_.cgroup_members(*made), std::vector<pid_t>{pid});

  ASSERT_EQ(::write(go_.get(), "x", 1), 1);
  EXPECT_TRUE(loop_.run_until([&] { return processes_.cgroup_members(*made)->size() == 2; }))
      << "what is forked in it is in it";
  const auto shared = processes_.make_child_cgroup(start(), name);
  EXPECT_EQ(shared.error().code, Code::kLimit) << "in use";
  EXPECT_FALSE(processes_.remove_cgroup(*made)) << "not empty";
  ASSERT_TRUE(processes_.kill_cgroup(*made));
  reap(pid);
  EXPECT_TRUE(loop_.run_until([&] { return processes_.cgroup_members(*made)->empty(); }));
  EXPECT_TRUE(processes_.remove_cgroup(*made));
  EXPECT_TRUE(processes_.cgroup_members(*made)->empty());
  EXPECT_TRUE(processes_.remove_cgroup(*made));
}

}  // namespace
}  // namespace gpurota::sys
