#include "base/make_room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpurota {
namespace {

int of(const std::vector<int>& owners, int newcomer) {
  return who_makes_room(
      owners, [](int owner) { return owner; }, newcomer);
}

TEST(MakeRoom, TheGroupWithMostMakesRoom) {
  EXPECT_EQ(of({1, 2, 2, 2, 3}, 1), 2);
  EXPECT_EQ(of({1, 2, 2, 2, 3}, 4), 2);
}

TEST(MakeRoom, NewcomerMakesRoomIfNoOtherHasMore) {
  EXPECT_EQ(of({1, 2, 2}, 2), 2);
  EXPECT_EQ(of({1, 2, 2}, 1), 1);
  EXPECT_EQ(of({1, 2, 3}, 4), 4);
  EXPECT_EQ(of({}, 4), 4);
}

// A user who fills a table leaves the entries of others in place, and each newcomer gets room.
TEST(MakeRoom, NoUserDisplacesEntriesOfOthers) {
  std::vector<int> table;
  const auto add = [&](int owner) {
    if (table.size() == 20) {
      const int who = of(table, owner);
      table.erase(std::find(table.begin(), table.end(), who));
    }
    table.push_back(owner);
  };
  for (int i = 0; i < 3; ++i) add(1);
  for (int i = 0; i < 1000; ++i) add(2);
  for (int i = 0; i < 5; ++i) add(3);
  for (int i = 0; i < 1000; ++i) add(2);
  EXPECT_EQ(std::count(table.begin(), table.end(), 1), 3);
  EXPECT_EQ(std::count(table.begin(), table.end(), 3), 5);
}

}  // namespace
}  // namespace gpurota
