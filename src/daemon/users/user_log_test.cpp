#include "daemon/users/user_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

class UserLogTest : public ::testing::Test {
 protected:
  UserLogTest() {
    log::set_sink(
        [this](log::Level, const std::string& line, const log::Fields&) { lines.push_back(line); });
  }
  ~UserLogTest() override { log::set_sink({}); }
  static void flood(int count, uid_t uid) {
    for (int i = 0; i < count; ++i) log::warn("tenant disconnected", {{"pid", i}, {"uid", uid}});
  }

  std::vector<std::string> lines;
  TimePoint now{};
  UserLog user_log{[this] { return now; }};
};

TEST_F(UserLogTest, FloodOfOneUserIsLoggedAsAFewLinesAndACount) {
  flood(5000, 1000);
  EXPECT_EQ(lines.size(), UserLog::kMostTold);
  now += 9s;
  user_log.write_counts();
  EXPECT_EQ(lines.size(), UserLog::kMostTold);
  now += 1s;
  user_log.write_counts();
  ASSERT_EQ(lines.size(), UserLog::kMostTold + 1);
  EXPECT_EQ(
      lines.back(),
      "more of the same within ten seconds, not written line=\"tenant disconnected\" uid=1000 "
      "count=4980");
}

TEST_F(UserLogTest, AnotherUsersLinesAreWrittenMeanwhile) {
  flood(5000, 1000);
  flood(1, 1001);
  EXPECT_EQ(lines.back(), "tenant disconnected pid=0 uid=1001");
  log::error("the driver does not answer about a GPU", {{"gpu", 0}});
  EXPECT_EQ(lines.back(), "the driver does not answer about a GPU gpu=0");
}

TEST_F(UserLogTest, LinesAreWrittenAgainWhenTheirTimeIsUp) {
  flood(100, 1000);
  now += 10s;
  user_log.write_counts();
  lines.clear();
  flood(5, 1000);
  EXPECT_EQ(lines.size(), 5u);
}

}  // namespace
}  // namespace gpurota::daemon
