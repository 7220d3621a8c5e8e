#include "daemon/control/control_server.h"

#include "base/log.h"
#include "daemon/control/call_handler_test.h"
#include "ipc/framer.h"
#include "ipc/unix_socket.h"
#include "testing/fake_event_loop.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

const std::string kCall = std::string("{\"method\":\"dev.gpurota.GetInfo\"}") + '\0';

const std::string kHold =
    std::string(R"({"method":"dev.gpurota.Hold","parameters":{"lease_id":"L7"},"more":true})") +
    '\0';

class ControlServerTest : public ::testing::Test, public QuietCalls {
 protected:
  ControlServerTest() {
    log::set_level(log::Level::kError);
    ipc::ListenOptions options;
    options.type = SOCK_STREAM;
    options.mode = 0600;
    const auto listening = server_.listen(*this, dir_.file("control.sock"), options);
    EXPECT_TRUE(listening) << listening.error().message;
  }
  ~ControlServerTest() override { log::set_level(log::Level::kInfo); }
  Fd connect() {
    auto fd = ipc::connect_unix(dir_.file("control.sock"), SOCK_STREAM, std::chrono::seconds(5));
    EXPECT_TRUE(fd);
    loop_.run_until_idle();
    return std::move(*fd);
  }
  static void send(const Fd& fd, const std::string& bytes) {
    ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // How many answers have come.
  static std::size_t answers(const Fd& fd) {
    std::size_t count = 0;
    char buffer[65536];
    for (ssize_t got; (got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      count += static_cast<std::size_t>(std::count(buffer, buffer + got, '\0'));
    }
    return count;
  }
  static constexpr int kPieces = 400;
  // Records for each piece which call it was made for.
  struct Pieces final : LongAnswer {
    Pieces(std::vector<int>& made, int call) : made_(made), call_(call) {}
    std::optional<std::string> go_on() override {
      made_.push_back(call_);
      if (++count_ < kPieces) return std::nullopt;
      return "long";
    }

   private:
    std::vector<int>& made_;
    int call_, count_ = 0;
  };
  Outcome call(const Caller& caller, const proto::Call&) override {
    ++calls_;
    Outcome outcome;
    if (is_taken_ && caller.may_wait_since) {
      outcome.again_after = CallEvent::kSample;
      return outcome;
    }
    if (moves_) {
      outcome.again_after = CallEvent::kMove;
      return outcome;
    }
    if (makes_long_) {
      outcome.long_answer = std::make_shared<Pieces>(made_, calls_);
      last_long_ = outcome.long_answer;
      return outcome;
    }
    if (file_) {
      outcome.on_worker = [file = file_] {
        file->wait();
        return std::string("read");
      };
      return outcome;
    }
    outcome.answer = std::string(answer_size_, 'x');
    outcome.held = holds_;
    return outcome;
  }

  testing::TempDir dir_;
  testing::FakeEventLoop loop_;
  config::Config config_;
  std::size_t answer_size_ = 10;
  int calls_ = 0;
  std::optional<LeaseId> holds_;
  bool makes_long_ = false;
  bool is_taken_ = false;  // a GPU looks taken, by its last sample
  bool moves_ = false;     // a process is being moved into its cgroup
  // If set, answers are read from a file, which can be read when the promise is fulfilled.
  std::optional<std::shared_future<void>> file_;
  std::vector<int> made_;
  std::weak_ptr<LongAnswer> last_long_;
  UserBudgets budgets_{{config_, 1000, 0}};
  ControlServer server_{{loop_, config_, budgets_}};
};

TEST_F(ControlServerTest, ClientWithManyCallsDoesNotBlockOthers) {
  const Fd greedy = connect(), modest = connect();
  std::string many;
  for (int i = 0; i < 400; ++i) many += kCall;
  send(greedy, many);
  send(modest, kCall);
  ASSERT_TRUE(loop_.run_until([&] { return answers(modest) == 1; }));
  EXPECT_LT(calls_, 200);
  std::size_t got = 0;
  EXPECT_TRUE(loop_.run_until([&] { return (got += answers(greedy)) == 400; }));
}

TEST_F(ControlServerTest, ACallThatWaitsForASampleIsMadeAgainAfterIt) {
  const Fd waits = connect(), quick = connect();
  is_taken_ = true;
  send(waits, kCall + kCall);
  loop_.run_until_idle();
  server_.repeat_calls(CallEvent::kSample);
  loop_.run_until_idle();
  EXPECT_EQ(calls_, 2) << "once when it came, and once after the sample";
  EXPECT_EQ(answers(waits), 0u);
  is_taken_ = false;
  send(quick, kCall);
  loop_.run_until_idle();
  EXPECT_EQ(answers(quick), 1u) << "others are served meanwhile";
  server_.repeat_calls(CallEvent::kSample);
  loop_.run_until_idle();
  EXPECT_EQ(answers(waits), 2u) << "and the next call of the connection";
  EXPECT_EQ(calls_, 5);
}

TEST_F(ControlServerTest, ACallWaitsForASampleNoLongerThanAWatchPeriod) {
  const Fd waits = connect();
  is_taken_ = true;
  send(waits, kCall);
  loop_.run_until_idle();
  EXPECT_EQ(answers(waits), 0u);
  loop_.advance(config_.watch_period);
  EXPECT_EQ(answers(waits), 1u);
  EXPECT_EQ(calls_, 2);
}

TEST_F(ControlServerTest, AClientThatLeavesBeforeTheSampleIsForgotten) {
  const std::size_t before = loop_.watched_fds();
  Fd waits = connect();
  is_taken_ = true;
  send(waits, kCall);
  loop_.run_until_idle();
  waits.reset();
  loop_.run_until_idle();
  server_.repeat_calls(CallEvent::kSample);
  loop_.run_until_idle();
  loop_.advance(config_.watch_period);
  EXPECT_EQ(loop_.watched_fds(), before);
}

TEST_F(ControlServerTest, CallThatWaitsForAMoveIsRepeatedAfterIt) {
  const Fd waits = connect(), quick = connect();
  moves_ = true;
  send(waits, kCall + kCall);
  loop_.run_until_idle();
  server_.repeat_calls(CallEvent::kMove);
  loop_.run_until_idle();
  EXPECT_EQ(calls_, 2) << "another process has arrived, and the call waits on";
  EXPECT_EQ(answers(waits), 0u);
  moves_ = false;
  send(quick, kCall);
  server_.repeat_calls(CallEvent::kSample);
  loop_.run_until_idle();
  EXPECT_EQ(answers(quick), 1u) << "others are served meanwhile";
  EXPECT_EQ(answers(waits), 0u);
  server_.repeat_calls(CallEvent::kMove);
  loop_.run_until_idle();
  EXPECT_EQ(answers(waits), 2u) << "and the next call of the connection";
}

TEST_F(ControlServerTest, WhileALongAnswerIsMadeOthersAreServed) {
  const Fd slow = connect(), quick = connect();
  makes_long_ = true;
  send(slow, kCall);
  ASSERT_TRUE(loop_.run_until([&] { return !made_.empty(); }));
  makes_long_ = false;
  send(quick, kCall);
  ASSERT_TRUE(loop_.run_until([&] { return answers(quick) == 1; }));
  EXPECT_LT(made_.size(), std::size_t{kPieces});
  EXPECT_TRUE(loop_.run_until([&] { return answers(slow) == 1; }));
  EXPECT_EQ(made_.size(), std::size_t{kPieces});
  send(slow, kCall);
  EXPECT_TRUE(loop_.run_until([&] { return answers(slow) == 1; })) << "and then the next call";
}

TEST_F(ControlServerTest, LongAnswersOfAUserAreMadeOneAtATime) {
  std::vector<Fd> clients;
  makes_long_ = true;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    send(clients.back(), kCall);
  }
  loop_.run_until_idle();
  for (const Fd& client : clients) EXPECT_EQ(answers(client), 1u);
  EXPECT_EQ(made_.size(), std::size_t{3 * kPieces});
  EXPECT_TRUE(std::is_sorted(made_.begin(), made_.end()));
}

TEST_F(ControlServerTest, ALongAnswerThatNobodyWaitsForAnyMoreIsNotMade) {
  Fd leaves = connect();
  const Fd waits = connect();
  makes_long_ = true;
  send(leaves, kCall);
  ASSERT_TRUE(loop_.run_until([&] { return !made_.empty(); }));
  const auto first = last_long_;
  send(waits, kCall);
  leaves.reset();
  ASSERT_TRUE(loop_.run_until([&] { return answers(waits) == 1; }));
  EXPECT_TRUE(first.expired());
  EXPECT_LT(std::count(made_.begin(), made_.end(), 1), kPieces);
  EXPECT_EQ(std::count(made_.begin(), made_.end(), 2), kPieces);
}

TEST_F(ControlServerTest, WhileAnAnswerIsReadFromAFileOthersAreServed) {
  const Fd reads = connect(), quick = connect();
  std::promise<void> disk;
  file_ = disk.get_future().share();
  send(reads, kCall + kCall);
  loop_.run_until_idle();
  EXPECT_EQ(calls_, 1) << "the next call on the connection waits";
  file_.reset();
  send(quick, kCall);
  loop_.run_until_idle();
  EXPECT_EQ(answers(quick), 1u);
  EXPECT_EQ(answers(reads), 0u);
  EXPECT_TRUE(server_.finish()) << "a caller waits for an answer";
  disk.set_value();
  std::size_t got = 0;
  EXPECT_TRUE(loop_.run_until([&] { return (got += answers(reads)) == 2; }));
}

TEST_F(ControlServerTest, AnAnswerFromAFileIsDroppedWhereItsConnectionHasEnded) {
  const std::size_t before = loop_.watched_fds();
  Fd leaves = connect();
  std::promise<void> disk;
  file_ = disk.get_future().share();
  send(leaves, kCall);
  loop_.run_until_idle();
  leaves.reset();
  loop_.run_until_idle();
  EXPECT_EQ(loop_.watched_fds(), before);
  // The next connection may be at the address in memory of the one that ended.
  const Fd next = connect();
  send(next, kCall);
  disk.set_value();
  std::size_t got = 0;
  EXPECT_TRUE(loop_.run_until([&] { return (got += answers(next)) == 1; }));
  loop_.run_until_idle();
  EXPECT_EQ(answers(next), 0u);
}

TEST_F(ControlServerTest, AClientThatDoesNotReadCostsOneAnswerAndLosesNone) {
  answer_size_ = std::size_t{1} << 20;
  const Fd client = connect();
  std::string many;
  for (int i = 0; i < 100; ++i) many += kCall;
  send(client, many);
  loop_.run_until_idle();
  EXPECT_EQ(calls_, 1);
  std::size_t got = 0;
  EXPECT_TRUE(loop_.run_until([&] { return (got += answers(client)) == 100; }));
}

TEST_F(ControlServerTest, AClientThatLeavesWithAnswersWaitingIsForgotten) {
  answer_size_ = std::size_t{1} << 20;
  const std::size_t before = loop_.watched_fds();
  Fd client = connect();
  send(client, kCall + kCall);
  loop_.run_until_idle();
  EXPECT_EQ(loop_.watched_fds(), before + 1);
  client.reset();
  loop_.run_until_idle();
  EXPECT_EQ(loop_.watched_fds(), before);
}

TEST_F(ControlServerTest, UnreadAnswersAreBoundedByUserAndNotLost) {
  answer_size_ = std::size_t{1} << 20;
  std::vector<Fd> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(connect());
    send(clients.back(), kCall);
  }
  loop_.run_until_idle();
  EXPECT_LT(calls_, 25);
  EXPECT_LE(budgets_.used(::getuid(), Budget::kUnread), mib(17).count());
  std::size_t got = 0;
  EXPECT_TRUE(loop_.run_until([&] {
    for (const Fd& client : clients) got += answers(client);
    return got == clients.size();
  }));
  EXPECT_EQ(budgets_.used(::getuid(), Budget::kUnread), 0u);
}

TEST_F(ControlServerTest, CallsQueuedBehindUnfinishedCallsAreBoundedByUser) {
  config_.unread_size_per_user = mib(1);
  holds_ = LeaseId{7};
  const std::string more = kCall.substr(0, kCall.size() - 1) + std::string(10000, ' ') + '\0';
  std::vector<Fd> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(connect());
    send(clients.back(), kHold);
    for (int k = 0; k < 10; ++k) send(clients.back(), more);
    loop_.run_until_idle();
  }
  EXPECT_LT(budgets_.used(::getuid(), Budget::kUnserved), mib(1).count() + (64u << 10));
  EXPECT_GT(budgets_.used(::getuid(), Budget::kUnserved), mib(1).count() / 2);
  clients.clear();
  loop_.run_until_idle();
  EXPECT_EQ(budgets_.used(::getuid(), Budget::kUnserved), 0u);
}

TEST_F(ControlServerTest, AClientThatLeavesWhileItsUserIsHeldBackIsStillServed) {
  answer_size_ = std::size_t{1} << 20;
  std::vector<Fd> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(connect());
    send(clients.back(), kCall);
  }
  loop_.run_until_idle();
  const int served = calls_;
  Fd leaves = connect();
  send(leaves, kCall);
  loop_.run_until_idle();
  leaves.reset();
  loop_.run_until_idle();
  EXPECT_EQ(calls_, served);
  clients.clear();
  loop_.run_until_idle();
  EXPECT_GT(calls_, served);
}

TEST_F(ControlServerTest, UnreadingClientStopsBlockingItsUserAfterAWhile) {
  answer_size_ = std::size_t{1} << 20;
  std::vector<Fd> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(connect());
    send(idle.back(), kCall);
  }
  const Fd waits = connect();
  send(waits, kCall);
  loop_.run_until_idle();
  EXPECT_EQ(answers(waits), 0u);
  loop_.advance(std::chrono::seconds(11));
  EXPECT_TRUE(loop_.run_until([&] { return answers(waits) == 1; }));
}

TEST_F(ControlServerTest, SlowHolderGetsOnlyTheNewestState) {
  holds_ = LeaseId{7};
  const Fd holder = connect();
  send(holder, kHold);
  loop_.run_until_idle();
  const auto say = [&](char what) { server_.tell_owner(LeaseId{7}, std::string(50000, what)); };
  for (int i = 0; i < 1000; ++i) say('a');
  say('z');
  EXPECT_LE(budgets_.used(::getuid(), Budget::kUnread), 250000u);
  std::string all;
  char buffer[65536];
  loop_.run_until([&] {
    for (ssize_t got; (got = ::recv(holder.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all.size() > 1 && all[all.size() - 2] == 'z';
  });
  EXPECT_LT(all.size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace gpurota::daemon
