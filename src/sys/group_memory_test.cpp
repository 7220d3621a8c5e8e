#include "sys/group_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpurota::sys {
namespace {

class GroupMemoryTest : public testing::Test {
 protected:
  GroupMemoryTest() {
    char place[] = "/tmp/group-memory-XXXXXX";
    root_ = ::mkdtemp(place);
    std::filesystem::create_directories(root_ + "/user/lease");
  }
  ~GroupMemoryTest() override { std::filesystem::remove_all(root_); }
  void limit(const std::string& group, const std::string& max, const std::string& current) const {
    std::ofstream(root_ + group + "/memory.max") << max << "\n";
    std::ofstream(root_ + group + "/memory.current") << current << "\n";
  }
  std::string root_;
};

TEST_F(GroupMemoryTest, TheGroupWithTheLeastRoomCounts) {
  limit("/user", "1000", "900");
  limit("/user/lease", "800", "100");
  EXPECT_EQ(read_group_room(root_ + "/user/lease"), Bytes(100));
  limit("/user", "max", "900");
  EXPECT_EQ(read_group_room(root_ + "/user/lease"), Bytes(700));
}

TEST_F(GroupMemoryTest, AGroupAboveItsLimitHasNoRoom) {
  limit("/user", "1000", "1200");
  EXPECT_EQ(read_group_room(root_ + "/user/lease"), Bytes());
}

TEST_F(GroupMemoryTest, WithoutALimitThereIsNoAnswer) {
  limit("/user", "max", "900");
  EXPECT_FALSE(read_group_room(root_ + "/user/lease"));
  EXPECT_FALSE(read_group_room(""));
}

}  // namespace
}  // namespace gpurota::sys
