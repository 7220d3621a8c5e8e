// Command lines of processes that can be read at once, late or never: no caller waits for them.
#include "sys/command_lines.h"

#include "base/proc_stat.h"
#include "testing/fake_event_loop.h"
#include "testing/held_up.h"

#include <gtest/gtest.h>

#include <mutex>

#include <unistd.h>

namespace gpurota::sys {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

// Command lines in /proc, read by the workers' threads.
struct Proc : testing::HeldUp<pid_t> {
  std::map<pid_t, Words> commands;
  int reads = 0;

  std::optional<Words> read(pid_t pid) {
    std::unique_lock lock(mutex());
    ++reads;
    wait(lock, pid);
    const auto command = commands.find(pid);
    return command == commands.end() ? std::nullopt : std::optional(command->second);
  }
  void set(pid_t pid, std::optional<Words> words) {
    const std::lock_guard lock(mutex());
    words ? void(commands[pid] = *words) : void(commands.erase(pid));
  }
};

class CommandLinesTest : public ::testing::Test {
 protected:
  ~CommandLinesTest() override { proc->let_all_go(); }

  static ports::ProcessInfo process(pid_t pid, uid_t uid = 1000, std::uint64_t start = 1) {
    ports::ProcessInfo info;
    info.pid = pid;
    info.uid = uid;
    info.start_ticks = start;
    return info;
  }
  std::optional<Words> known(const ports::ProcessInfo& process) {
    const auto words = commands.of(process);
    return words ? std::optional(*words) : std::nullopt;
  }
  bool becomes(const ports::ProcessInfo& process, const Words& words) {
    return loop.run_until([&] { return known(process) == words; });
  }
  Code problem(const ports::ProcessInfo& process) { return commands.of(process).error().code; }

  testing::FakeEventLoop loop;
  std::shared_ptr<Proc> proc = std::make_shared<Proc>();
  CommandLines commands{loop, [proc = proc](pid_t pid, std::uint64_t) { return proc->read(pid); }};
};

TEST_F(CommandLinesTest, CommandIsReadWithoutMakingTheCallerWait) {
  proc->set(10, Words{"python", "train.py"});
  const std::uint64_t before = commands.changes();
  EXPECT_EQ(problem(process(10)), Code::kUnavailable);
  EXPECT_TRUE(becomes(process(10), {"python", "train.py"}));
  EXPECT_EQ(commands.changes(), before + 1) << "whoever was told that it is not known asks again";
}

TEST_F(CommandLinesTest, UnreadableProcessDelaysNoOtherUser) {
  proc->set(10, Words{"hostile"});
  proc->set(20, Words{"honest"});
  proc->set_stuck(10, true);
  EXPECT_EQ(problem(process(10)), Code::kUnavailable);
  loop.advance(CommandLines::kPatience);
  EXPECT_EQ(problem(process(10)), Code::kTimeout) << "nobody is to ask again soon";
  EXPECT_TRUE(becomes(process(20, 1001), {"honest"}));
  loop.advance(1h);
  EXPECT_EQ(problem(process(10)), Code::kTimeout);
  EXPECT_LE(proc->reads, 2) << "one reader is enough for it, which may not have begun";
  proc->set_stuck(10, false);
  EXPECT_TRUE(becomes(process(10), {"hostile"}));
}

TEST_F(CommandLinesTest, OtherCommandsAreReadOnceHangingReadersEnd) {
  const auto count = static_cast<pid_t>(UserWorkers::kMost);
  for (pid_t i = 1; i <= count; ++i) {
    proc->set_stuck(i, true);
    EXPECT_EQ(problem(process(i, 5000 + static_cast<uid_t>(i))), Code::kUnavailable);
  }
  proc->set(9999, Words{"honest"});
  EXPECT_EQ(problem(process(9999, 1000)), Code::kTimeout);
  proc->set_stuck(1, false);
  EXPECT_TRUE(
      loop.run_until([&] { return commands.of(process(1, 5001)).error().code == Code::kGone; }));
  loop.advance(CommandLines::kFresh);
  EXPECT_TRUE(becomes(process(9999, 1000), {"honest"}));
}

TEST_F(CommandLinesTest, IsReadAgainAfterAWhileAndNotBefore) {
  proc->set(10, Words{"sh"});
  EXPECT_TRUE(becomes(process(10), {"sh"}));
  proc->set(10, Words{"python"});
  EXPECT_EQ(known(process(10)), Words{"sh"});
  EXPECT_EQ(proc->reads, 1);
  loop.advance(CommandLines::kFresh);
  EXPECT_EQ(known(process(10)), Words{"sh"}) << "meanwhile";
  EXPECT_TRUE(becomes(process(10), {"python"}));
}

TEST_F(CommandLinesTest, EndedProcessKeepsItsNameAndUnknownOneHasNone) {
  proc->set(10, Words{"python"});
  EXPECT_TRUE(becomes(process(10), {"python"}));
  proc->set(10, std::nullopt);
  loop.advance(CommandLines::kFresh);
  EXPECT_EQ(known(process(10)), Words{"python"});
  EXPECT_TRUE(loop.run_until([&] {
    const std::lock_guard lock(proc->mutex());
    return proc->reads == 2;
  }));
  loop.run_until_idle();
  EXPECT_EQ(known(process(10)), Words{"python"});
  EXPECT_TRUE(loop.run_until([&] { return problem(process(11)) == Code::kGone; }));
}

TEST_F(CommandLinesTest, AnotherProcessWithThatPidIsReadAnew) {
  proc->set(10, Words{"old"});
  EXPECT_TRUE(becomes(process(10), {"old"}));
  proc->set(10, Words{"new"});
  EXPECT_EQ(problem(process(10, 1000, 2)), Code::kUnavailable);
  EXPECT_TRUE(becomes(process(10, 1000, 2), {"new"}));
}

TEST_F(CommandLinesTest, AUserWhoFillsTheTableMakesRoomForOthers) {
  proc->set(9999, Words{"honest"});
  EXPECT_TRUE(becomes(process(9999, 1000), {"honest"}));
  // More reads than a user's worker accepts at a time, so that some are not being read.
  for (pid_t pid = 1; pid <= static_cast<pid_t>(CommandLines::kMostProcesses) + 100; ++pid) {
    (void)commands.of(process(pid, 6666));
  }
  EXPECT_EQ(known(process(9999, 1000)), Words{"honest"});
  proc->set(9998, Words{"also", "honest"});
  EXPECT_TRUE(becomes(process(9998, 1001), {"also", "honest"}));
}

TEST_F(CommandLinesTest, KeepsABoundedNumber) {
  for (pid_t pid = 1; pid <= static_cast<pid_t>(CommandLines::kMostProcesses); ++pid) {
    (void)commands.of(process(pid, 1000 + static_cast<uid_t>(pid) % 8));
  }
  EXPECT_EQ(problem(process(99999)), Code::kTimeout);
  loop.advance(2min);
  proc->set(99999, Words{"late"});
  EXPECT_TRUE(becomes(process(99999, 77), {"late"}));
}

TEST(ReadCommandLine, FailsForAnotherProcessWithTheSamePid) {
  const std::uint64_t start = read_proc_stat(::getpid())->start_ticks;
  const auto words = read_command_line(::getpid(), start);
  ASSERT_TRUE(words);
  EXPECT_NE(words->front().find("sys_test"), std::string::npos);
  EXPECT_FALSE(read_command_line(::getpid(), start + 1));
  EXPECT_FALSE(read_command_line(0x7ffffff0, 1));
}

}  // namespace
}  // namespace gpurota::sys
