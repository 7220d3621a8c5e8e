#include "daemon/history/series_keeper.h"

#include "base/log.h"
#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gtest/gtest.h>

#include <mutex>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

// A disk that the test controls.
class FakeSeriesStore final : public ports::SeriesStore {
 public:
  Result<ports::LoadedSeries> load() override {
    const std::lock_guard lock(mutex_);
    ++loads_;
    if (broken_) return fail(Code::kIo, "no such disk");
    ports::LoadedSeries loaded{{}, trouble_};
    for (const auto& [key, row] : rows_) loaded.rows.push_back(row);
    return loaded;
  }
  Result<void> save(const std::vector<SeriesRow>& rows) override {
    const std::lock_guard lock(mutex_);
    ++saves_;
    if (full_) return fail(Code::kIo, "the disk is full");
    for (const SeriesRow& row : rows) rows_[{row.ring, row.place}] = row;
    return {};
  }
  void set_full(bool full) {
    const std::lock_guard lock(mutex_);
    full_ = full;
  }
  std::size_t seconds() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        rows_.begin(), rows_.end(), [](const auto& row) { return row.first.first == 0; }));
  }
  int saves() const {
    const std::lock_guard lock(mutex_);
    return saves_;
  }

 private:
  mutable std::mutex mutex_;
  bool full_ = false, broken_ = false;
  int loads_ = 0, saves_ = 0;
  std::string trouble_;
  std::map<std::pair<int, std::int64_t>, SeriesRow> rows_;
};

class SeriesKeeperTest : public FakeWorldTest {
 protected:
  SeriesKeeperTest() {
    log::set_sink([this](log::Level, const std::string& text, const log::Fields&) {
      if (text.starts_with("the history")) told.push_back(text);
    });
    GpuEntry& gpu = *gpus.find(kGpu);
    gpu.taken = loop.now();
    gpu.sample.load_percent = 40;
    gpu.sample.used = gib(3);
    gpu.figures.power_mw = 300'000;
    gpu.figures.xid_errors = 0;
  }
  ~SeriesKeeperTest() override { log::set_sink({}); }

  WallTime wall() const {
    return std::chrono::time_point_cast<WallTime::duration>(WallTime(480000h) +
                                                            (loop.now() - zero) + ahead);
  }
  std::unique_ptr<SeriesKeeper> start() {
    auto keeper = std::make_unique<SeriesKeeper>(
        SeriesKeeper::Parts{loop, gpus, world.tables, [this](LeaseId) { return turn; },
                            [this] { return wall(); }, store});
    keeper->start();
    settle();
    return keeper;
  }
  // Waits until the worker has done its jobs.
  void settle() {
    (void)loop.run_until([] { return false; }, 20ms);
  }
  // Lets `seconds` pass, one at a time, and then waits for the worker, which works in real time.
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) loop.advance(1s);
    settle();
  }
  static std::optional<series::Entry> entry(const SeriesKeeper& keeper, WallTime time,
                                            const series::Subject& subject) {
    const std::string* const row = keeper.rings().find(0, series::step_of(time, 1s));
    if (!row) return std::nullopt;
    for (const series::Entry& each : series::decode(*row)) {
      if (each.subject == subject) return each;
    }
    return std::nullopt;
  }

  const TimePoint zero = loop.now();
  std::chrono::milliseconds ahead{0};
  testing::MemoryStore leases;
  lease::GrantBook grants;
  LeaseWorld world{loop, leases, processes, gpus, grants, config, [this] { return wall(); }};
  std::shared_ptr<FakeSeriesStore> store = std::make_shared<FakeSeriesStore>();
  std::optional<TurnFigures> turn;
  std::vector<std::string> told;
};

TEST_F(SeriesKeeperTest, StoresEachSecondTheFiguresOfTheLastSamples) {
  const auto keeper = start();
  const WallTime begun = wall();
  pass(60);
  for (int i = 0; i < 60; ++i) {
    const auto seen = entry(*keeper, begun + std::chrono::seconds(i), series::subject_of(kGpu));
    ASSERT_TRUE(seen) << i;
    EXPECT_EQ(seen->values[series::kLoad], 400u);
    EXPECT_EQ(seen->values[series::kMemory], 3072u);
    EXPECT_EQ(seen->values[series::kPower], 3000u);
    EXPECT_EQ(seen->values[series::kHeat], series::kNone);
  }
}

TEST_F(SeriesKeeperTest, CountsXidErrorsInTheSecondInWhichTheyCome) {
  const auto keeper = start();
  pass(3);
  gpus.find(kGpu)->figures.xid_errors = 2;
  pass(3);
  std::uint64_t all = 0;
  for (int i = -7; i <= 0; ++i) {
    const auto seen = entry(*keeper, wall() + std::chrono::seconds(i), series::subject_of(kGpu));
    if (seen) all += seen->values[series::kXid];
  }
  EXPECT_EQ(all, 2u);
}

TEST_F(SeriesKeeperTest, AGpuInErrorIsAGap) {
  const auto keeper = start();
  pass(2);
  gpus.find(kGpu)->sample.error = "fell off the bus";
  pass(5);
  EXPECT_FALSE(entry(*keeper, wall() - 1s, series::subject_of(kGpu)));
}

TEST_F(SeriesKeeperTest, LeaseHasSeriesOfMemoryWaitingAndEvictions) {
  const auto keeper = start();
  loop.advance(500ms);  // from here on, each pass(2) has two samples
  AcquireRequest request;
  request.process = processes.id_of(processes.spawn());
  request.kind = LeaseKind::kReservation;
  request.lasts = 1h;
  const auto lease = world.leases.make(request, {{kGpu, gib(8), std::nullopt}}, std::nullopt);
  ASSERT_TRUE(lease);
  const LeaseId id = (*lease)->lease.id;
  keeper->on_sample(kGpu, {{id, gib(2)}}, {});
  turn = TurnFigures{.holds = false, .waits = true, .out = gib(1)};
  pass(2);
  turn->out = gib(2);  // the eviction continues
  pass(2);
  pass(2);
  turn = TurnFigures{.holds = true, .waits = false, .out = Bytes()};
  pass(2);
  turn->out = gib(1);
  pass(2);
  std::uint64_t evictions = 0, waited = 0;
  for (int i = -12; i <= 0; ++i) {
    const auto seen = entry(*keeper, wall() + std::chrono::seconds(i), series::subject_of(id));
    if (!seen) continue;
    EXPECT_EQ(seen->values[series::kUsed], 2048u);
    evictions += seen->values[series::kEvictions];
    waited += seen->values[series::kWaited];
  }
  EXPECT_EQ(evictions, 3u);  // the first one, its continuation after a pause, and the last one
  EXPECT_EQ(waited, 6000u);
  const auto gpu = entry(*keeper, wall() - 1s, series::subject_of(kGpu));
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->values[series::kHolder], id.value);
}

TEST_F(SeriesKeeperTest, LeaseOnAGpuInErrorHasNoSamples) {
  const auto keeper = start();
  AcquireRequest request;
  request.process = processes.id_of(processes.spawn());
  const auto lease = world.leases.make(request, {{kGpu, gib(8), std::nullopt}}, std::nullopt);
  ASSERT_TRUE(lease);
  const LeaseId id = (*lease)->lease.id;
  keeper->on_sample(kGpu, {{id, gib(2)}}, {{{id, 40}}});
  pass(3);
  const auto known = entry(*keeper, wall() - 1s, series::subject_of(id));
  ASSERT_TRUE(known);
  EXPECT_EQ(known->values[series::kUsed], 2048u);
  EXPECT_EQ(known->values[series::kSm], 400u);
  keeper->on_failed_sample(kGpu);
  pass(3);
  const auto unknown = entry(*keeper, wall() - 1s, series::subject_of(id));
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->values[series::kUsed], series::kNone);
  EXPECT_EQ(unknown->values[series::kSm], series::kNone);
}

TEST_F(SeriesKeeperTest, AUserOfManyLeasesLeavesRoomForOthers) {
  const auto keeper = start();
  const auto make = [&](uid_t uid) {
    AcquireRequest request;
    request.uid = uid;
    request.process = processes.id_of(processes.spawn());
    const auto lease = world.leases.make(request, {{kGpu, mib(1), std::nullopt}}, std::nullopt);
    return (*lease)->lease.id;
  };
  const LeaseId first = make(6666);
  for (std::size_t i = 0; i < 2 * series::kMostLeases; ++i) (void)make(6666);
  const LeaseId others = make(1000);
  std::map<LeaseId, Bytes> used = {{first, gib(1)}, {others, gib(2)}};
  keeper->on_sample(kGpu, used, {});
  pass(3);
  EXPECT_TRUE(entry(*keeper, wall() - 1s, series::subject_of(others)));
  EXPECT_TRUE(entry(*keeper, wall() - 1s, series::subject_of(first)));
}

TEST_F(SeriesKeeperTest, ATimerThatIsLateLeavesNoSecondOut) {
  const auto keeper = start();
  const WallTime begun = wall();
  pass(3);
  ahead = 650ms;  // as if the loop had been busy for so long
  pass(5);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(entry(*keeper, begun + std::chrono::seconds(i), series::subject_of(kGpu))) << i;
  }
}

TEST_F(SeriesKeeperTest, NoMoreThanTenSecondsAreNotOnTheDisk) {
  const auto keeper = start();
  for (int second = 1; second <= 100; ++second) {
    pass(1);
    EXPECT_GE(store->seconds() + 10, static_cast<std::size_t>(second));
  }
}

TEST_F(SeriesKeeperTest, FullDiskIsReportedOnceAndLosesNoSamplesInMemory) {
  const auto keeper = start();
  store->set_full(true);
  for (int i = 0; i < 60; ++i) pass(1);
  EXPECT_EQ(store->seconds(), 0u);
  EXPECT_GE(store->saves(), 3);
  ASSERT_EQ(told.size(), 1u);
  ASSERT_TRUE(keeper->error());
  store->set_full(false);
  for (int i = 0; i < 40; ++i) pass(1);
  EXPECT_GE(store->seconds(), 80u);
  EXPECT_FALSE(keeper->error());
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(SeriesKeeperTest, StoredSamplesSurviveARestart) {
  const WallTime begun = wall();
  {
    const auto keeper = start();
    pass(5);
  }
  const auto next = start();
  pass(1);
  EXPECT_TRUE(entry(*next, begun + 2s, series::subject_of(kGpu)));
}

}  // namespace
}  // namespace gpurota::daemon
