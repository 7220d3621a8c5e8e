#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::string_literals;

ports::StoredJob job(std::uint64_t id) {
  return {id, 1000, "alice", "spec\0\xff"s, "state\0"s, ports::ProcessId{12, UINT64_MAX}, "boot"};
}

TEST(JobStore, KeepsAJobAsItWasOverARestart) {
  testing::TempDir dir;
  {
    auto store = SqliteStore::open(dir.path());
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->save_job(job(2)));
    ASSERT_TRUE((*store)->save_job(job(1)));
  }
  auto store = SqliteStore::open(dir.path());
  ASSERT_TRUE(store);
  EXPECT_EQ(*(*store)->load_jobs(), (std::vector<ports::StoredJob>{job(1), job(2)}));
}

TEST(JobStore, ReplacesAndRemoves) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE((*store)->save_job(job(1)));
  ports::StoredJob changed = job(1);
  changed.keeper.reset();
  changed.state = "";
  ASSERT_TRUE((*store)->save_job(changed));
  EXPECT_EQ(*(*store)->load_jobs(), std::vector{changed});
  ASSERT_TRUE((*store)->remove_job(1));
  EXPECT_TRUE((*store)->load_jobs()->empty());
}

TEST(JobStore, TakesSeveralAtOnce) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE((*store)->save_jobs({job(1), job(3), job(2)}));
  EXPECT_EQ(*(*store)->load_jobs(), (std::vector<ports::StoredJob>{job(1), job(2), job(3)}));
}

TEST(JobStore, NeverGivesANumberTwice) {
  auto store = SqliteStore::open_in_memory();
  EXPECT_EQ(*(*store)->next_job_id(), 1U);
  EXPECT_EQ(*(*store)->next_job_id(), 2U);
}

}  // namespace
}  // namespace gpurota::store
