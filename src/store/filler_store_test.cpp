#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::string_literals;

ports::StoredFiller filler(std::uint64_t id) {
  ports::StoredFiller made;
  made.id = id;
  made.uid = 1000;
  made.user = "alice";
  made.spec = "spec\0\xff"s;
  made.gpus = {GpuUuid{"GPU-a"}, GpuUuid{"MIG-b"}};
  made.instances = 2;
  made.memory = SizeSpec{Bytes(), 88};
  made.idle_after = std::chrono::seconds(30);
  made.grace = std::chrono::seconds(2);
  made.state = "paused";
  made.places = {GpuUuid{"MIG-b"}};
  made.evicts = true;
  made.out = {GpuUuid{"MIG-b"}};
  return made;
}

TEST(FillerStore, KeepsAFillerAsItWasOverARestart) {
  testing::TempDir dir;
  ports::StoredFiller bare;
  bare.id = 1;
  bare.state = "active";
  {
    auto store = SqliteStore::open(dir.path());
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->save_filler(filler(2)));
    ASSERT_TRUE((*store)->save_filler(bare));
  }
  auto store = SqliteStore::open(dir.path());
  ASSERT_TRUE(store);
  EXPECT_EQ(*(*store)->load_fillers(), (std::vector<ports::StoredFiller>{bare, filler(2)}));
}

TEST(FillerStore, ReplacesAndRemovesAndNeverGivesANumberTwice) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE((*store)->save_filler(filler(1)));
  ports::StoredFiller changed = filler(1);
  changed.state = "active";
  changed.memory = SizeSpec{gib(8), 0};
  ASSERT_TRUE((*store)->save_filler(changed));
  EXPECT_EQ(*(*store)->load_fillers(), std::vector{changed});
  ASSERT_TRUE((*store)->remove_filler(1));
  EXPECT_TRUE((*store)->load_fillers()->empty());
  EXPECT_EQ(*(*store)->next_filler_id(), 1U);
  EXPECT_EQ(*(*store)->next_filler_id(), 2U);
}

}  // namespace
}  // namespace gpurota::store
