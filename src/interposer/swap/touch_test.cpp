#include "interposer/swap/touch.h"

#include "interposer/os/sys.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::interposer {
namespace {

constexpr std::size_t kBytes = std::size_t{9} << 20;  // the last part is smaller

class Touched : public testing::TestWithParam<bool> {};

TEST_P(Touched, AllPagesAreResident) {
  void* memory = map_memory(kBytes, 0);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(touch_pages(memory, kBytes, GetParam()));
  std::vector<unsigned char> there(kBytes / 4096);
  ASSERT_EQ(::mincore(memory, kBytes, there.data()), 0);
  for (const unsigned char page : there) EXPECT_EQ(page & 1, 1);
  ::munmap(memory, kBytes);
}

TEST_P(Touched, UnmappedPagesAreAnError) {
  void* memory = map_memory(kBytes, 0);
  ASSERT_NE(memory, nullptr);
  if (::madvise(memory, 4096, MADV_POPULATE_WRITE) != 0) GTEST_SKIP() << "needs Linux 5.14";
  ASSERT_EQ(::munmap(static_cast<char*>(memory) + (kBytes - 4096), 4096), 0);
  EXPECT_FALSE(touch_pages(memory, kBytes, GetParam()));
  ::munmap(memory, kBytes);
}

INSTANTIATE_TEST_SUITE_P(InAHurryAndNot, Touched, testing::Bool());

}  // namespace
}  // namespace gpurota::interposer
