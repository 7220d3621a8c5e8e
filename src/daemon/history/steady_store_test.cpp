// The store on a disk that blocks until the test lets it continue: fsync and fdatasync are replaced
// here, for SQLite, too.
#include "daemon/history/steady_store.h"

#include "base/log.h"
#include "sys/sd_event_loop.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<bool> g_stuck{false};
std::atomic<bool> g_broken{false};
std::atomic<int> g_waiting{0};
std::atomic<int> g_done{0};

int wait_for_disk(long call, int fd) {
  ++g_waiting;
  while (g_stuck) (void)::usleep(500);
  --g_waiting;
  ++g_done;
  if (!g_broken) return static_cast<int>(::syscall(call, fd));
  errno = EIO;
  return -1;
}

}  // namespace

extern "C" int fsync(int fd) { return wait_for_disk(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return wait_for_disk(SYS_fdatasync, fd); }

namespace gpurota::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SteadyStoreTest : public ::testing::Test {
 protected:
  SteadyStoreTest() {
    log::set_sink([](log::Level, const std::string&, const log::Fields&) {});
    open();
  }
  ~SteadyStoreTest() override {
    g_stuck = g_broken = false;
    close();
    log::set_sink({});
  }
  void open() {
    loop_ = std::move(*sys::SdEventLoop::make());
    database_ = std::move(*store::SqliteStore::open(dir_.path()));
    store_ = std::make_unique<SteadyStore>(*loop_, *database_);
    store_->durability().on_news(
        [this](const ports::Durability::News& news) { news_.push_back(news); });
  }
  void close() {
    store_.reset();
    database_.reset();
  }
  template <class Holds>
  void run_until(Holds holds) {
    while (!holds()) {
      auto timer = loop_->add_timer(loop_->now() + std::chrono::milliseconds(1),
                                    ports::Urgency::kHousekeeping, [this] { loop_->stop(); });
      ASSERT_TRUE(loop_->run());
    }
  }
  void run_until_told() {
    run_until([this] {
      return store_->durability().told() == store_->durability().made() &&
             store_->durability().is_open();
    });
  }
  static ports::StoredLease lease(std::uint64_t id) {
    ports::StoredLease row;
    row.id = LeaseId{id};
    row.kind = "run";
    return row;
  }
  std::vector<std::uint64_t> stored() {
    std::vector<std::uint64_t> ids;
    const auto leases = store_->load_leases();
    for (const auto& row : *leases) ids.push_back(row.id.value);
    return ids;
  }
  // Only the worker may use the database now, and it waits for the disk.
  void tidy_up() {
    ASSERT_TRUE(store_->save_lease(lease(1)));
    run_until_told();
    g_stuck = true;
    store_->settle();
    run_until([this] { return !store_->durability().is_open() && g_waiting > 0; });
  }

  gpurota::testing::TempDir dir_;
  std::unique_ptr<sys::SdEventLoop> loop_;
  std::unique_ptr<store::SqliteStore> database_;
  std::unique_ptr<SteadyStore> store_;
  std::vector<ports::Durability::News> news_;
};

TEST_F(SteadyStoreTest, ChangesDoNotWaitForTheDiskAndAreConfirmedOnceStored) {
  g_stuck = true;
  ASSERT_TRUE(store_->save_lease(lease(1)));
  run_until([] { return g_waiting > 0; });
  EXPECT_EQ(store_->durability().made(), 1u);
  EXPECT_EQ(store_->durability().told(), 0u);
  EXPECT_TRUE(store_->durability().is_open());
  EXPECT_THAT(stored(), ElementsAre(1)) << "a kill would not take it";
  g_stuck = false;
  run_until_told();
  ASSERT_EQ(news_.size(), 1u);
  EXPECT_EQ(news_[0].upto, 1u);
  EXPECT_FALSE(news_[0].error);
}

TEST_F(SteadyStoreTest, ChangesDuringAWriteShareOneWait) {
  g_stuck = true;
  ASSERT_TRUE(store_->save_lease(lease(1)));
  run_until([] { return g_waiting > 0; });
  const int before = g_done;
  for (std::uint64_t id = 2; id <= 20; ++id) ASSERT_TRUE(store_->save_lease(lease(id)));
  g_stuck = false;
  run_until_told();
  EXPECT_EQ(g_done - before, 2) << "the one that was under way, and one for the rest";
  EXPECT_EQ(news_.back().upto, 20u);
}

TEST_F(SteadyStoreTest, ChangesDuringCleanupAreStoredAfterItInOrder) {
  const LeaseId last = *store_->next_lease_id();
  tidy_up();
  const std::uint64_t before = store_->durability().told();
  EXPECT_TRUE(store_->save_lease(lease(2)));
  EXPECT_TRUE(store_->save_lease(lease(3)));
  EXPECT_TRUE(store_->remove_lease(LeaseId{2}));
  EXPECT_EQ(*store_->next_lease_id(), LeaseId{last.value + 1});
  EXPECT_EQ(store_->read_usage({}, 1).error().code, Code::kUnavailable);
  EXPECT_EQ(store_->durability().told(), before);
  g_stuck = false;
  run_until_told();
  EXPECT_THAT(stored(), ElementsAre(1, 3));
  EXPECT_EQ(*store_->next_lease_id(), LeaseId{last.value + 2});
  EXPECT_TRUE(store_->read_usage({}, 1));
}

TEST_F(SteadyStoreTest, PendingChangesAreStoredBeforeItEnds) {
  tidy_up();
  EXPECT_TRUE(store_->save_lease(lease(2)));
  g_stuck = false;
  close();
  open();
  EXPECT_THAT(stored(), ElementsAre(1, 2));
}

TEST_F(SteadyStoreTest, LossOnDiskIsReportedAndTheLogUnusedUntilAllIsInTheDatabase) {
  g_broken = true;
  ASSERT_TRUE(store_->save_lease(lease(1)));
  run_until_told();
  ASSERT_TRUE(news_.back().error);
  EXPECT_EQ(news_.back().error->code, Code::kIo);
  EXPECT_TRUE(database_->needs_settling());
  g_broken = false;
  EXPECT_FALSE(database_->sync()) << "the kernel has forgotten what it could not write";
  ASSERT_TRUE(store_->save_lease(lease(2)));
  run_until_told();
  EXPECT_FALSE(news_.back().error);
  EXPECT_TRUE(database_->sync());
  EXPECT_THAT(stored(), ElementsAre(1, 2));
}

TEST_F(SteadyStoreTest, LossOnDiskStaysReportedWhileTheLogCannotBeTidied) {
  g_broken = true;
  ASSERT_TRUE(store_->save_lease(lease(1)));
  run_until_told();
  ASSERT_TRUE(news_.back().error);
  const std::size_t before = news_.size();
  store_->settle();
  run_until([&] { return news_.size() > before && store_->durability().is_open(); });
  EXPECT_TRUE(news_.back().error) << "the disk still lacks the lease";
  g_broken = false;
  store_->settle();
  run_until([this] { return !news_.back().error; });
  EXPECT_TRUE(database_->sync());
}

TEST_F(SteadyStoreTest, NoWaitForTheDiskWithoutChanges) {
  ASSERT_TRUE(store_->save_lease(lease(1)));
  store_->settle();
  run_until_told();
  const int before = g_done;
  store_->settle();
  (void)stored();
  run_until_told();
  EXPECT_EQ(g_done, before);
}

}  // namespace
}  // namespace gpurota::daemon
