// A user whose processes delay reads delays no other user, and the number of threads is limited.
#include "sys/user_workers.h"

#include "base/log.h"
#include "testing/fake_event_loop.h"
#include "testing/held_up.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

namespace gpurota::sys {
namespace {

using namespace std::chrono_literals;

// Reads of stuck users do not return until the test is over.
struct Gate : testing::HeldUp<uid_t> {
  uid_t pass(uid_t uid) {
    std::unique_lock lock(mutex());
    wait(lock, uid);
    return uid;
  }
};

class UserWorkersTest : public ::testing::Test {
 protected:
  UserWorkersTest() {
    log::set_sink(
        [this](log::Level, const std::string& line, const log::Fields&) { lines.push_back(line); });
  }
  ~UserWorkersTest() override {
    log::set_sink({});
    gate->let_all_go();
  }

  bool read(uid_t uid) {
    return workers.run(
        uid, [gate = gate, uid] { return gate->pass(uid); },
        [this](uid_t read_uid) { answered.push_back(read_uid); });
  }
  bool answers(uid_t uid) {
    const std::size_t before = answered.size();
    return read(uid) && loop.run_until([&] { return answered.size() > before; });
  }
  void fill_with_stuck_users() {
    for (uid_t uid = 0; uid < UserWorkers::kMost; ++uid) {
      gate->set_stuck(uid, true);
      EXPECT_TRUE(read(uid));
    }
  }

  testing::FakeEventLoop loop;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::vector<std::string> lines;
  std::vector<uid_t> answered;
  UserWorkers workers{loop, "test", "the test"};
};

TEST_F(UserWorkersTest, BlockedUserDelaysNoOtherUser) {
  gate->set_stuck(1000, true);
  EXPECT_TRUE(read(1000));
  EXPECT_TRUE(answers(1001));
  EXPECT_TRUE(answers(1001));
  gate->set_stuck(1000, false);
  EXPECT_TRUE(loop.run_until([&] { return answered.size() == 3; }));
}

TEST_F(UserWorkersTest, ThreadsAreLimitedWhileUsersAreStuck) {
  fill_with_stuck_users();
  EXPECT_FALSE(read(5000));
  EXPECT_FALSE(read(5001));
  EXPECT_EQ(workers.size(), UserWorkers::kMost);
  EXPECT_EQ(lines.size(), 1u) << "said once";
  gate->set_stuck(7, false);
  EXPECT_TRUE(loop.run_until([&] { return answered.size() == 1; }));
  EXPECT_TRUE(answers(5000)) << "in the place of the one that is idle";
  EXPECT_EQ(workers.size(), UserWorkers::kMost);
}

TEST_F(UserWorkersTest, WaitingReadsOfOneUserAreBounded) {
  gate->set_stuck(1000, true);
  for (std::size_t i = 0; i < UserWorkers::kMostWaiting; ++i) EXPECT_TRUE(read(1000));
  EXPECT_FALSE(read(1000));
  EXPECT_TRUE(answers(1001));
}

TEST_F(UserWorkersTest, SlowReadIsReportedOnce) {
  gate->set_stuck(1000, true);
  EXPECT_TRUE(read(1000));
  EXPECT_TRUE(read(1000));
  EXPECT_TRUE(lines.empty());
  loop.advance(UserWorkers::kPatience);
  EXPECT_TRUE(read(1000));
  EXPECT_TRUE(read(1000));
  EXPECT_EQ(lines.size(), 1u);
  gate->set_stuck(1000, false);
  EXPECT_TRUE(loop.run_until([&] { return answered.size() == 4; }));
  loop.advance(UserWorkers::kPatience);
  EXPECT_TRUE(answers(1000));
  EXPECT_EQ(lines.size(), 1u) << "it was idle, not stuck";
}

TEST_F(UserWorkersTest, IdleThreadsEndAfterAWhile) {
  EXPECT_TRUE(answers(1000));
  workers.tidy();
  EXPECT_EQ(workers.size(), 1u);
  gate->set_stuck(1001, true);
  EXPECT_TRUE(read(1001));
  loop.advance(UserWorkers::kIdle);
  workers.tidy();
  EXPECT_EQ(workers.size(), 1u) << "the one that reads stays";
}

}  // namespace
}  // namespace gpurota::sys
