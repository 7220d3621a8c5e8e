#include "daemon/control_server.h"

#include "base/log.h"
#include "ipc/framer.h"
#include "ipc/unix_socket.h"
#include "testing/fake_event_loop.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

const std::string kCall = std::string("{\"method\":\"dev.gpurota.GetInfo\"}") + '\0';

class ControlServerTest : public ::testing::Test {
 protected:
  ControlServerTest() {
    log::set_level(log::Level::kError);
    ipc::ListenOptions options;
    options.type = SOCK_STREAM;
    options.mode = 0600;
    const auto listening = server_.listen(dir_.file("control.sock"), options);
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
  // The answers that are there.
  static std::size_t answers(const Fd& fd) {
    std::size_t count = 0;
    char buffer[65536];
    for (ssize_t got; (got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      count += static_cast<std::size_t>(std::count(buffer, buffer + got, '\0'));
    }
    return count;
  }
  Outcome answer(const Caller&) {
    ++calls_;
    Outcome outcome;
    outcome.answer = std::string(answer_size_, 'x');
    return outcome;
  }

  testing::TempDir dir_;
  testing::FakeEventLoop loop_;
  config::Config config_;
  std::size_t answer_size_ = 10;
  int calls_ = 0;
  UserBudgets budgets_{{config_, 1000, 0}};
  ControlServer server_{
      {loop_,
       config_,
       budgets_,
       [this](const Caller& caller, const proto::Call&) { return answer(caller); },
       {},
       [](LeaseId) {}}};
};

TEST_F(ControlServerTest, OneThatSendsManyCallsAtOnceLetsOthersHaveTheirTurn) {
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

TEST_F(ControlServerTest, WhoDoesNotReadCostsOneAnswerAndLosesNone) {
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

TEST_F(ControlServerTest, WhoHangsUpWithAnswersWaitingIsForgotten) {
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

}  // namespace
}  // namespace gpurota::daemon
