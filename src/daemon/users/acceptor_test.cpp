#include "daemon/users/acceptor.h"

#include "base/log.h"
#include "testing/fake_event_loop.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest() {
    log::set_level(log::Level::kError);
    ipc::ListenOptions options;
    options.type = SOCK_STREAM;
    options.mode = 0600;
    const auto listening = acceptor_.listen(dir_.file("socket"), options);
    EXPECT_TRUE(listening) << listening.error().message;
  }
  ~AcceptorTest() override { log::set_level(log::Level::kInfo); }
  void connect(int times) {
    for (int i = 0; i < times; ++i) {
      auto fd = ipc::connect_unix(dir_.file("socket"), SOCK_STREAM, std::chrono::seconds(5));
      ASSERT_TRUE(fd);
      clients_.push_back(std::move(*fd));
    }
  }

  testing::TempDir dir_;
  testing::FakeEventLoop loop_;
  config::Config config_;
  int most_ = 100;
  std::vector<Fd> clients_, welcomed_;
  std::vector<UserBudgets::Held> held_;
  int turned_away_ = 0;
  UserBudgets budgets_{{config_, 1000, 0}};
  Acceptor acceptor_{loop_,
                     {"client", [this] { return most_; },
                      [this](uid_t) { return static_cast<long>(welcomed_.size()); }, budgets_,
                      [this](Fd fd, ipc::Peer, UserBudgets::Held held) {
                        welcomed_.push_back(std::move(fd));
                        held_.push_back(std::move(held));
                      },
                      [this](const Fd&, const Error&) { ++turned_away_; }}};
};

// The clock stands still, so all but the first few connections of the user wait in the queue.
TEST_F(AcceptorTest, FastConnectionsWaitAndAllAreAccepted) {
  connect(50);
  loop_.run_until_idle();
  EXPECT_EQ(welcomed_.size(), 50u);
  EXPECT_EQ(turned_away_, 0);
  EXPECT_EQ(budgets_.used(::getuid(), Budget::kDescriptors), 50u) << "each counts once";
}

TEST_F(AcceptorTest, WaitingConnectionsCountAgainstTheLimitOfTheirUser) {
  most_ = 10;
  connect(30);
  loop_.run_until_idle();
  EXPECT_EQ(welcomed_.size(), 10u);
  EXPECT_EQ(turned_away_, 20);
}

TEST_F(AcceptorTest, AClientThatLeavesBeforeItsTurnCostsNothing) {
  connect(50);
  clients_.clear();
  loop_.run_until_idle();
  welcomed_.clear();
  held_.clear();
  EXPECT_EQ(budgets_.used(::getuid(), Budget::kDescriptors), 0u);
}

TEST_F(AcceptorTest, ClosedAcceptorAcceptsNobody) {
  connect(5);
  acceptor_.close();
  loop_.run_until_idle();
  EXPECT_TRUE(welcomed_.empty());
}

}  // namespace
}  // namespace gpurota::daemon
