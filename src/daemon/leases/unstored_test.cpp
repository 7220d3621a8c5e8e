#include "daemon/leases/unstored.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<void> full() { return fail(Code::kIo, "the disk is full"); }

class UnstoredTest : public ::testing::Test {
 protected:
  // The ids that write_again() tries. Writing fails for `first_failing` and all later ids.
  std::vector<std::uint64_t> tried(std::uint64_t first_failing = UINT64_MAX) {
    std::vector<std::uint64_t> ids;
    unstored_.write_again([&](std::uint64_t id) {
      ids.push_back(id);
      return unstored_.note(id, id < first_failing ? Result<void>() : full());
    });
    return ids;
  }

  Unstored unstored_{"job"};
};

TEST_F(UnstoredTest, StoredChangeIsNotReported) {
  EXPECT_TRUE(unstored_.note(1, {}));
  EXPECT_TRUE(unstored_.heard_of(1, "web"));
  EXPECT_THAT(tried(), IsEmpty());
}

TEST_F(UnstoredTest, TheUserOfAnUnstoredChangeIsToldWhatIsWrong) {
  EXPECT_FALSE(unstored_.note(1, full()));
  const auto heard = unstored_.heard_of(1, "web");
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code, Code::kIo);
  EXPECT_THAT(heard.error().message,
              HasSubstr("web: the change is in effect, but not stored: the disk is full"));
  EXPECT_TRUE(unstored_.heard_of(2, "db")) << "that of another is no matter of this one";
}

TEST_F(UnstoredTest, IsWrittenAgainUntilThatSucceeds) {
  unstored_.note_or_say(1, "web", full());
  unstored_.note_or_say(2, "db", full());
  EXPECT_THAT(tried(2), ElementsAre(1, 2));
  EXPECT_THAT(tried(), ElementsAre(2));
  EXPECT_THAT(tried(), IsEmpty());
  EXPECT_TRUE(unstored_.heard_of(2, "db"));
}

TEST_F(UnstoredTest, RetryStopsAtTheFirstFailure) {
  for (const std::uint64_t id : {1u, 2u, 3u}) (void)unstored_.note(id, full());
  EXPECT_THAT(tried(0), ElementsAre(1));
  EXPECT_THAT(tried(), ElementsAre(1, 2, 3));
}

TEST_F(UnstoredTest, LaterStoredChangeClearsTheError) {
  (void)unstored_.note(1, full());
  (void)unstored_.note(1, {});
  EXPECT_TRUE(unstored_.heard_of(1, "web"));
  EXPECT_THAT(tried(), IsEmpty());
}

}  // namespace
}  // namespace gpurota::daemon
