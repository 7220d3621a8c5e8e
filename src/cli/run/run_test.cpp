// `gpurota run` as a process of its own, against a fake daemon.
#include "cli/exit_codes.h"
#include "client/fake_daemon.h"
#include "proto/codec.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

class RunTest : public ::testing::Test {
 protected:
  ~RunTest() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  // Starts gpurota with these words; read_line() returns what it and its command print.
  void start(Words words) {
    words.insert(words.begin(), {GPUROTA_BINARY, "--runtime-dir", dir_.path()});
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = Fd(ends[0]);
    const Fd theirs(ends[1]);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(theirs.get(), STDOUT_FILENO);
      ::dup2(theirs.get(), STDERR_FILENO);
      ::execv(GPUROTA_BINARY, argv.data());
      ::_exit(99);
    }
  }
  void run(const Words& command, const Words& options = {}) {
    Words words = {"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    start(words);
  }
  std::string read_line() {
    std::string line;
    pollfd entry{output_.get(), POLLIN, 0};
    for (char c = 0; ::poll(&entry, 1, 10000) == 1 && ::read(output_.get(), &c, 1) == 1;) {
      if (c == '\n') return line;
      line.push_back(c);
    }
    return line;
  }
  // All remaining output, once every writer has ended.
  std::string read_rest() {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(output_.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return status;
  }
  int exit_code() {
    const int status = wait();
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status);
  }

  testing::TempDir dir_;
  client::FakeDaemon daemon_{dir_.path()};
  Fd output_;
  pid_t pid_ = 0;
};

TEST_F(RunTest, ReturnsTheExitCodeOfTheCommand) {
  run({"sh", "-c", "exit 7"});
  EXPECT_EQ(exit_code(), 7);
  EXPECT_EQ(read_rest(), "");
}

TEST_F(RunTest, ASignalThatEndsTheCommandEndsGpurota) {
  run({"sh", "-c", "kill -USR1 $$"});
  const int status = wait();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGUSR1);
}

// As if started by a parent that ignores SIGCHLD: the kernel then reports no end of the command.
TEST_F(RunTest, EndsWithTheCommandWhenSigchldIsIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  run({"grep", "SigIgn", "/proc/self/status"});
  (void)std::signal(SIGCHLD, before);
  const std::string line = read_line();
  const auto digits = line.find_first_of("0123456789abcdef", line.find('\t'));
  ASSERT_NE(digits, std::string::npos) << line;
  EXPECT_NE(std::stoull(line.substr(digits), nullptr, 16) & (1ULL << (SIGCHLD - 1)), 0U) << line;
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(RunTest, MissingCommandOfAJobIsReportedWithItsPath) {
  ::setenv("GPUROTA_JOB", "web", 1);
  run({"no-such-command"});
  ::unsetenv("GPUROTA_JOB");
  EXPECT_EQ(exit_code(), kExitNotFound);
  EXPECT_NE(read_rest().find("--env PATH"), std::string::npos);
  run({"no-such-command"});
  EXPECT_EQ(exit_code(), kExitNotFound);
  EXPECT_EQ(read_rest().find("--env PATH"), std::string::npos);
}

TEST_F(RunTest, DaemonGetsRequestAndCommandBeforeItRuns) {
  run({"sh", "-c", "echo $$"}, {"--memory", "8G", "--note", "n"});
  const int pid = std::atoi(read_line().c_str());
  EXPECT_EQ(exit_code(), 0);
  const auto calls = daemon_.calls();
  ASSERT_EQ(calls.size(), 3u);
  const proto::LeaseRequest& wanted = std::get<proto::Enqueue>(calls[0]).request;
  EXPECT_EQ(wanted.kind, "run");
  EXPECT_EQ(wanted.memory, (SizeSpec{gib(8), 0}));
  EXPECT_EQ(wanted.note, "n");
  EXPECT_EQ(wanted.command, (Words{"sh", "-c", "echo $$"}));
  int started = 0;
  for (const auto& call : calls) {
    if (const auto* start = std::get_if<proto::Start>(&call)) started = start->pid;
  }
  EXPECT_EQ(started, pid);
}

TEST_F(RunTest, CommandGetsTheEnvironmentFromTheDaemon) {
  proto::Acquire::Reply reply;
  reply.lease.lease_id = {1};
  reply.environment = {{"CUDA_VISIBLE_DEVICES", "3"}};
  daemon_.set_acquire_reply(reply);
  run({"sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(read_line(), "3");
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(RunTest, MissingCommandRequestsNoLease) {
  run({"no-such-command"});
  EXPECT_EQ(exit_code(), kExitNotFound);
  EXPECT_TRUE(daemon_.calls().empty());
}

TEST_F(RunTest, WithoutWaitingTheDaemonIsAskedOnce) {
  std::atomic<int> refusals = 0;  // counted on the daemon's thread
  daemon_.on_call([&](const proto::Call& call) -> std::optional<std::string> {
    if (!std::holds_alternative<proto::Acquire>(call.params)) return std::nullopt;
    ++refusals;
    return proto::error_json(proto::no_gpu_error("in use without a lease", 0, 1));
  });
  run({"true"}, {"--nonblock"});
  EXPECT_EQ(exit_code(), kExitNoGpu);
  EXPECT_EQ(refusals.load(), 1);
}

// A daemon's answer to a waiting client.
std::string waiting_answer(int position) {
  proto::Enqueue::Reply reply;
  proto::Request& request = reply.request.emplace();
  request.request_id = {7};
  request.position = position;
  request.reason = "as an older program shows it";
  request.wait_reason = {.code = proto::ReasonCode::kLeasedOpenEnded,
                         .text = "waits for GPU 1: bob's program (L3) has no time limit",
                         .remedy = "starts now with --swap"};
  return proto::reply_json<proto::Enqueue>(reply, true);
}

TEST_F(RunTest, AWaitingRunSaysSoAndLeavesAtCtrlC) {
  daemon_.on_call(
      [](const proto::Call&) -> std::optional<std::string> { return waiting_answer(2); });
  run({"true"});
  EXPECT_EQ(read_line(),
            "gpurota: waiting as R7, position 2: waits for GPU 1: bob's program (L3) has no time "
            "limit; starts now with --swap");
  ::kill(pid_, SIGINT);
  const int status = wait();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST_F(RunTest, WaitingEndsWithItsTimeLimit) {
  daemon_.on_call(
      [](const proto::Call&) -> std::optional<std::string> { return waiting_answer(1); });
  run({"true"}, {"--wait", "1s"});
  EXPECT_EQ(exit_code(), kExitNoGpu);
  EXPECT_NE(read_rest().find("gave up after 1 s: waits for GPU 1: bob's program (L3) has no time "
                             "limit\n"),
            std::string::npos);
}

TEST_F(RunTest, AWaitingRunComesBackToARestartedDaemonWithTheSameTicket) {
  std::atomic<bool> restarted = false;  // read on the daemon's thread
  daemon_.on_call([&](const proto::Call& call) -> std::optional<std::string> {
    if (restarted || !std::holds_alternative<proto::Enqueue>(call.params)) return std::nullopt;
    return waiting_answer(1);
  });
  run({"sh", "-c", "exit 7"});
  EXPECT_NE(read_line().find("position 1"), std::string::npos);
  daemon_.stop();
  EXPECT_NE(read_line().find("waiting for it to come back"), std::string::npos);
  restarted = true;
  daemon_.start_again();
  EXPECT_EQ(exit_code(), 7);
  std::vector<std::string> tickets;
  for (const auto& call : daemon_.calls()) {
    if (const auto* enqueue = std::get_if<proto::Enqueue>(&call))
      tickets.push_back(enqueue->ticket);
  }
  ASSERT_EQ(tickets.size(), 2u);
  EXPECT_EQ(tickets[0], tickets[1]);
  EXPECT_FALSE(tickets[0].empty());
}

// The daemon receives the first call of this kind, and then is killed.
template <class Method>
client::FakeDaemon::Handler killed_at(std::atomic<int>& calls, int times = 1) {
  return [&calls, times](const proto::Call& call) -> std::optional<std::string> {
    if (!std::holds_alternative<Method>(call.params) || ++calls > times) return std::nullopt;
    return "";
  };
}

TEST_F(RunTest, ADaemonThatIsKilledBeforeItsFirstAnswerIsAskedAgainWithTheSameTicket) {
  std::atomic<int> calls = 0;
  daemon_.on_call(killed_at<proto::Enqueue>(calls));
  run({"sh", "-c", "exit 7"});
  EXPECT_EQ(exit_code(), 7);
  std::set<std::string> tickets;
  for (const auto& call : daemon_.calls()) {
    if (const auto* enqueue = std::get_if<proto::Enqueue>(&call)) tickets.insert(enqueue->ticket);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tickets.size(), 1U);
}

TEST_F(RunTest, DaemonThatHangsUpIsNotRetriedForever) {
  std::atomic<int> calls = 0;
  daemon_.on_call(killed_at<proto::Enqueue>(calls, 1000));
  run({"true"});
  EXPECT_EQ(exit_code(), kExitRunFailed);
  EXPECT_NE(read_rest().find("too many connections"), std::string::npos);
}

TEST_F(RunTest, ADaemonThatIsKilledWhenTheCommandIsToStartIsAskedAgain) {
  std::atomic<int> calls = 0;
  daemon_.on_call(killed_at<proto::Start>(calls));
  run({"sh", "-c", "echo ran; exit 7"});
  EXPECT_EQ(read_line(), "ran");
  EXPECT_EQ(exit_code(), 7);
  EXPECT_EQ(calls, 2);
}

TEST_F(RunTest, ExpiredTimeLimitIs124) {
  run({"sleep", "600"}, {"--timeout", "2h"});
  ASSERT_TRUE(daemon_.wait_for(proto::Start::kMethod));
  // The outcome is the same whether gpurota sees the end of the lease or of the command first.
  daemon_.end_lease(proto::Ended::kExpired, "its time limit is over");
  EXPECT_NE(read_rest().find("has ended: its time limit is over"), std::string::npos);
  EXPECT_EQ(exit_code(), kExitTimedOut);
  EXPECT_EQ(std::get<proto::Enqueue>(daemon_.calls()[0]).request.seconds, 7200);
}

TEST_F(RunTest, NoGpuIs75AndOtherRefusalsAre125) {
  daemon_.on_call([](const proto::Call&) -> std::optional<std::string> {
    return proto::error_json(proto::no_gpu_error("all are taken", 0, 8));
  });
  run({"true"}, {"--nonblock"});
  EXPECT_EQ(exit_code(), kExitNoGpu);
  EXPECT_EQ(read_rest(), "gpurota: all are taken\n");
  daemon_.on_call([](const proto::Call&) -> std::optional<std::string> {
    return proto::error_json(proto::wire_error({Code::kNotFound, 0, "there is no GPU 9"}));
  });
  run({"true"});
  EXPECT_EQ(exit_code(), kExitRunFailed);
}

TEST_F(RunTest, ACommandThatCannotBeStartedIsNotRun) {
  daemon_.on_call([](const proto::Call& call) -> std::optional<std::string> {
    if (!std::holds_alternative<proto::Start>(call.params)) return std::nullopt;
    return proto::error_json(proto::wire_error({Code::kIo, 0, "no cgroup"}));
  });
  run({"echo", "ran"});
  EXPECT_EQ(exit_code(), kExitRunFailed);
  EXPECT_EQ(read_rest(), "gpurota: no cgroup\n");
}

TEST_F(RunTest, SignalsToGpurotaReachTheCommand) {
  run({"sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done"});
  ASSERT_EQ(read_line(), "ready");
  ASSERT_EQ(::kill(pid_, SIGTERM), 0);
  EXPECT_EQ(exit_code(), 9);
}

TEST_F(RunTest, ALostLeaseIs123AndSaysWhy) {
  run({"sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_EQ(read_line(), "ready");
  ASSERT_TRUE(daemon_.wait_for(proto::Hold::kMethod));
  daemon_.end_lease(proto::Ended::kReleased, "released by root");
  EXPECT_EQ(exit_code(), kExitLeaseLost);
  EXPECT_NE(read_rest().find("released by root"), std::string::npos);
}

TEST_F(RunTest, ARestartedDaemonIsFoundAgainQuietly) {
  run({"sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_EQ(read_line(), "ready");
  ASSERT_TRUE(daemon_.wait_for(proto::Hold::kMethod));
  daemon_.stop();
  daemon_.start_again();
  EXPECT_TRUE(daemon_.wait_for(proto::Hold::kMethod, 2));
  daemon_.end_lease(proto::Ended::kReleased, "released after the restart");
  EXPECT_EQ(exit_code(), kExitLeaseLost);
}

TEST_F(RunTest, ReleaseBeforeReconnectIsALostLease) {
  run({"sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_EQ(read_line(), "ready");
  ASSERT_TRUE(daemon_.wait_for(proto::Hold::kMethod));
  daemon_.stop();
  daemon_.end_lease(proto::Ended::kReleased, "released right after the restart");
  daemon_.start_again();
  EXPECT_NE(read_line().find("released right after"), std::string::npos);
  EXPECT_EQ(exit_code(), kExitLeaseLost);
}

TEST_F(RunTest, ALeaseThatANewDaemonDoesNotKnowEndsTheCommand) {
  run({"sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_EQ(read_line(), "ready");
  ASSERT_TRUE(daemon_.wait_for(proto::Hold::kMethod));
  daemon_.stop();
  daemon_.on_call([](const proto::Call&) -> std::optional<std::string> {
    return proto::error_json(proto::wire_error({Code::kNotFound, 0, "there is no lease L1"}));
  });
  daemon_.start_again();
  EXPECT_EQ(exit_code(), kExitLeaseLost);
}

TEST_F(RunTest, CommandContinuesWithoutADaemon) {
  run({"sh", "-c", "trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done"});
  ASSERT_EQ(read_line(), "ready");
  ASSERT_TRUE(daemon_.wait_for(proto::Hold::kMethod));
  daemon_.stop();
  ASSERT_EQ(::kill(pid_, SIGTERM), 0);
  EXPECT_EQ(exit_code(), 6);
}

TEST_F(RunTest, RunWaitsForTheLeasesOtherProcesses) {
  daemon_.set_ends_with_command(false);
  run({"sh", "-c", "exit 3"}, {"-v"});
  while (read_line().find("ending its lease") == std::string::npos) {
  }
  EXPECT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0);
  daemon_.end_lease(proto::Ended::kFinished, "all are gone");
  EXPECT_EQ(exit_code(), 3);
}

TEST_F(RunTest, SignalEndsTheWaitForTheLeasesOtherProcesses) {
  daemon_.set_ends_with_command(false);
  run({"sh", "-c", "exit 3"}, {"-v"});
  while (read_line().find("ending its lease") == std::string::npos) {
  }
  ASSERT_EQ(::kill(pid_, SIGINT), 0);
  EXPECT_EQ(exit_code(), 3);
}

}  // namespace
}  // namespace gpurota::cli
