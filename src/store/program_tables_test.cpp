#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::string_literals;

ports::StoredJob job(std::uint64_t id) {
  return {{id, 1000, "alice", "spec\0\xff"s}, "state\0"s, "boot"};
}

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

TEST(JobStore, JobSurvivesARestartUnchanged) {
  testing::TempDir dir;
  {
    auto store = SqliteStore::open(dir.path());
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->save_jobs({job(2)}));
    ASSERT_TRUE((*store)->save_jobs({job(1)}));
  }
  auto store = SqliteStore::open(dir.path());
  ASSERT_TRUE(store);
  EXPECT_EQ(*(*store)->load_jobs(), (std::vector<ports::StoredJob>{job(1), job(2)}));
}

TEST(JobStore, ReplacesAndRemoves) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE((*store)->save_jobs({job(1)}));
  ports::StoredJob changed = job(1);
  changed.state = "";
  ASSERT_TRUE((*store)->save_jobs({changed}));
  EXPECT_EQ(*(*store)->load_jobs(), std::vector{changed});
  ASSERT_TRUE((*store)->remove_program(ports::ProgramKind::kJob, 1));
  EXPECT_TRUE((*store)->load_jobs()->empty());
}

TEST(JobStore, SavesSeveralJobsAtOnce) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE((*store)->save_jobs({job(1), job(3), job(2)}));
  EXPECT_EQ(*(*store)->load_jobs(), (std::vector<ports::StoredJob>{job(1), job(2), job(3)}));
}

TEST(JobStore, KeepsItemsWithTheirJob) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE((*store)->save_jobs({job(1), job(2), job(3)}));
  const ports::StoredItem first{1, std::string("a\0b", 3), "boot"}, second{2, "c", "boot"};
  ASSERT_TRUE((*store)->save_items(3, {second, first}, false));
  ASSERT_TRUE((*store)->save_items(2, {second}, false));
  ports::StoredItem changed = second;
  changed.state = "d";
  ASSERT_TRUE((*store)->save_items(2, {changed}, false));
  auto jobs = *(*store)->load_jobs();
  EXPECT_TRUE(jobs[0].items.empty());
  EXPECT_EQ(jobs[1].items, std::vector{changed});
  EXPECT_EQ(jobs[2].items, (std::vector{first, second}));
  ASSERT_TRUE((*store)->save_items(3, {}, true));
  ASSERT_TRUE((*store)->remove_program(ports::ProgramKind::kJob, 2));
  ASSERT_TRUE((*store)->save_jobs({job(2)}));
  jobs = *(*store)->load_jobs();
  EXPECT_TRUE(jobs[1].items.empty());
  EXPECT_TRUE(jobs[2].items.empty());
}

TEST(JobStore, NeverGivesANumberTwice) {
  auto store = SqliteStore::open_in_memory();
  EXPECT_EQ(*(*store)->next_program_id(ports::ProgramKind::kJob), 1U);
  EXPECT_EQ(*(*store)->next_program_id(ports::ProgramKind::kJob), 2U);
}

TEST(FillerStore, FillerSurvivesARestartUnchanged) {
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
  changed.memory = std::nullopt;
  changed.of_free = 80;
  changed.paused_by = "by root";
  ASSERT_TRUE((*store)->save_filler(changed));
  EXPECT_EQ(*(*store)->load_fillers(), std::vector{changed});
  ASSERT_TRUE((*store)->remove_program(ports::ProgramKind::kFiller, 1));
  EXPECT_TRUE((*store)->load_fillers()->empty());
  EXPECT_EQ(*(*store)->next_program_id(ports::ProgramKind::kFiller), 1U);
  EXPECT_EQ(*(*store)->next_program_id(ports::ProgramKind::kFiller), 2U);
}

}  // namespace
}  // namespace gpurota::store
