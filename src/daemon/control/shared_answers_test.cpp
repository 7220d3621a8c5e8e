#include "daemon/control/shared_answers.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using About = SharedAnswers::About;

class SharedAnswersTest : public ::testing::Test {
 protected:
  std::string get(std::optional<uid_t> viewer, std::uint64_t grants = 0,
                  About about = About::kStatus) {
    return *answers_.get(about, viewer, grants, [this] { return std::to_string(++made_); });
  }
  SharedAnswers answers_;
  int made_ = 0;
};

TEST_F(SharedAnswersTest, AreMadeOnceUntilSomethingChanges) {
  EXPECT_EQ(get(1000), "1");
  EXPECT_EQ(get(1000), "1");
  answers_.changed();
  EXPECT_EQ(get(1000), "2");
  EXPECT_EQ(get(1000, 1), "3") << "grants have changed";
  EXPECT_EQ(get(1000, 1), "3");
}

TEST_F(SharedAnswersTest, AnswersOfOneUserNeverGoToAnother) {
  EXPECT_EQ(get(1000), "1");
  EXPECT_EQ(get(1001), "2");
  EXPECT_EQ(get(std::nullopt), "3");
  EXPECT_EQ(get(1000, 0, About::kProcesses), "4");
  EXPECT_EQ(get(1000), "1");
}

TEST_F(SharedAnswersTest, AnswersOfManyUsersAreNotAllKept) {
  for (uid_t uid = 0; uid < 10 * SharedAnswers::kMost; ++uid) (void)get(uid);
  made_ = 0;
  for (uid_t uid = 0; uid < 10 * SharedAnswers::kMost; ++uid) (void)get(uid);
  EXPECT_GE(made_, static_cast<int>(9 * SharedAnswers::kMost));
}

TEST_F(SharedAnswersTest, AnAnswerThatIsBeingSentOutlivesAChange) {
  const auto text = answers_.get(About::kStatus, 1000, 0, [] { return std::string("old"); });
  answers_.changed();
  (void)get(1000);
  EXPECT_EQ(*text, "old");
}

}  // namespace
}  // namespace gpurota::daemon
