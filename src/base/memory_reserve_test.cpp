#include "base/memory_reserve.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <new>

namespace gpurota {
namespace {

class MemoryReserve : public ::testing::Test {
 protected:
  MemoryReserve() { memory_reserve::install(); }
  ~MemoryReserve() override {
    (void)memory_reserve::fill();
    std::set_new_handler(nullptr);
  }
  // Does what operator new does when malloc fails.
  static void find_no_memory() { std::get_new_handler()(); }
};

TEST_F(MemoryReserve, IsUsedWhenMemoryIsShortAndRefilledLater) {
  EXPECT_TRUE(memory_reserve::is_full());
  find_no_memory();
  EXPECT_FALSE(memory_reserve::is_full());
  EXPECT_TRUE(memory_reserve::fill());
  EXPECT_TRUE(memory_reserve::is_full());
}

TEST_F(MemoryReserve, GivesEachBlockOnceThenReportsThatItIsEmpty) {
  for (std::size_t i = 0; i < memory_reserve::kBlocks; ++i) EXPECT_NO_THROW(find_no_memory());
  EXPECT_THROW(find_no_memory(), std::bad_alloc);
  EXPECT_TRUE(memory_reserve::fill());
  EXPECT_NO_THROW(find_no_memory());
}

}  // namespace
}  // namespace gpurota
