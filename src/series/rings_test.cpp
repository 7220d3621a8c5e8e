#include "series/rings.h"

#include <gtest/gtest.h>

namespace gpurota::series {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const GpuUuid kGpu{"GPU-1"};
const WallTime kStart(hours(480000));  // a multiple of 5 minutes

Entry gpu(std::uint64_t load) {
  Entry entry;
  entry.subject = subject_of(kGpu);
  entry.values[kLoad] = entry.values[kMaxLoad] = load;
  entry.values[kXid] = 1;
  return entry;
}

Entry read(const Rings& rings, std::size_t ring, WallTime time) {
  const std::string* const row = rings.find(ring, step_of(time, kShapes[ring].step));
  const auto entries = row ? decode(*row) : std::vector<Entry>();
  return entries.empty() ? Entry() : entries.front();
}

// One sample each second, with its load.
WallTime run(Rings& rings, WallTime from, int count, std::uint64_t load) {
  for (int i = 0; i < count; ++i, from += seconds(1)) rings.add(from, {gpu(load)});
  return from;
}

TEST(Rings, MakeACoarserStepFromItsFinerStepsWhenItIsOver) {
  Rings rings;
  const WallTime then = run(rings, run(rings, kStart, 5, 100), 5, 300);
  EXPECT_EQ(rings.find(1, step_of(kStart, seconds(10))), nullptr);
  rings.add(then, {gpu(0)});
  const Entry step = read(rings, 1, kStart);
  EXPECT_EQ(step.seconds, 10u);
  EXPECT_EQ(step.values[kLoad], 200u);
  EXPECT_EQ(step.values[kMaxLoad], 300u);
  EXPECT_EQ(step.values[kXid], 10u);
}

TEST(Rings, DiscardStepsOfTheLastRound) {
  Rings rings;
  run(rings, kStart, 901, 100);
  EXPECT_EQ(rings.find(0, step_of(kStart, seconds(1))), nullptr);
  EXPECT_NE(rings.find(0, step_of(kStart + seconds(1), seconds(1))), nullptr);
  EXPECT_EQ(read(rings, 2, kStart).seconds, 300u);
}

TEST(Rings, LeaveAGapWhereNothingWasSampled) {
  Rings rings;
  const WallTime then = run(rings, kStart, 15, 100);
  run(rings, then + hours(2), 30, 400);  // the machine was suspended
  EXPECT_EQ(read(rings, 1, kStart + seconds(10)).seconds, 5u);
  EXPECT_EQ(rings.find(1, step_of(kStart + hours(1), seconds(10))), nullptr);
  EXPECT_EQ(read(rings, 2, kStart).seconds, 15u);
  EXPECT_EQ(read(rings, 2, kStart).values[kLoad], 100u);
}

TEST(Rings, WaitForAClockThatWasSetBackALittle) {
  Rings rings;
  const WallTime then = run(rings, kStart, 20, 100);
  rings.add(then - seconds(9), {gpu(900)});
  EXPECT_EQ(read(rings, 0, then - seconds(9)).values[kLoad], 100u);
  rings.add(then, {gpu(900)});
  EXPECT_EQ(read(rings, 0, then).values[kLoad], 900u);
}

TEST(Rings, DiscardSamplesOfAWrongClockInTheFuture) {
  Rings rings;
  run(rings, kStart, 30, 100);
  run(rings, kStart + hours(24 * 365 + 5), 700, 500);
  (void)rings.take_changed();
  run(rings, kStart + seconds(30), 31, 200);
  EXPECT_EQ(read(rings, 1, kStart).values[kLoad], 100u);
  EXPECT_EQ(read(rings, 1, kStart + seconds(30)).values[kLoad], 200u);
  EXPECT_EQ(rings.find(2, step_of(kStart + hours(24 * 365 + 5), seconds(300))), nullptr);
  // Discarded rows are removed from the disk, too, unless a newer row has taken their place.
  const auto rows = rings.take_changed();
  EXPECT_TRUE(
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.data.empty(); }));
}

TEST(Rings, ContinueAfterTheDaemonWasKilled) {
  Rings first;
  run(first, kStart, 297, 100);
  const auto stored = first.take_changed();
  Rings second;
  // The first sample of the next daemon may come before what was stored.
  second.add(kStart + seconds(305), {gpu(700)});
  second.restore(stored, kStart + seconds(305));
  run(second, kStart + seconds(306), 10, 700);
  EXPECT_EQ(read(second, 1, kStart + seconds(290)).seconds, 7u);
  EXPECT_EQ(read(second, 1, kStart + seconds(300)).values[kLoad], 700u);
  EXPECT_EQ(read(second, 2, kStart).seconds, 297u);
  EXPECT_EQ(read(second, 2, kStart).values[kLoad], 100u);
}

TEST(Rings, ContinueInTheSameStepsAfterARestart) {
  Rings first;
  run(first, kStart, 13, 100);
  Rings second;
  second.restore(first.take_changed(), kStart + seconds(15));
  run(second, kStart + seconds(16), 5, 200);
  const Entry step = read(second, 1, kStart + seconds(10));
  EXPECT_EQ(step.seconds, 7u);
  EXPECT_EQ(step.values[kMaxLoad], 200u);
}

// The disk answers late.
TEST(Rings, RecomputeAStepAfterTheDiskReturnedTheRest) {
  Rings first;
  run(first, kStart, 297, 100);
  Rings second;
  run(second, kStart + seconds(298), 5, 700);
  ASSERT_EQ(read(second, 2, kStart).seconds, 2u);
  second.restore(first.take_changed(), kStart + seconds(302));
  EXPECT_EQ(read(second, 1, kStart + seconds(290)).seconds, 9u);
  EXPECT_EQ(read(second, 2, kStart).seconds, 299u);
  EXPECT_EQ(read(second, 2, kStart).values[kLoad], 104u);
}

TEST(Rings, SamplesMissingOnDiskAreStored) {
  Rings rings;
  run(rings, kStart, 20, 100);
  auto rows = rings.take_changed();
  const SeriesRow lost = rows[3];
  rows.erase(rows.begin() + 3);
  rings.restore(rows, kStart + seconds(19));
  EXPECT_EQ(rings.take_changed(), std::vector<SeriesRow>{lost});
}

// The clock was wrong when the last daemon ran, and was set right before this one began.
TEST(Rings, StoredSamplesOfTheFutureAreRemoved) {
  Rings wrong;
  run(wrong, kStart + hours(1), 30, 100);
  Rings rings;
  const auto stored = wrong.take_changed();
  rings.restore(stored, kStart);
  const auto rows = rings.take_changed();
  ASSERT_EQ(rows.size(), stored.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].number, stored[i].number);
    EXPECT_EQ(rows[i].data, "");
  }
  rings.restore(stored, kStart + hours(2));  // as if nothing had reached the disk
  EXPECT_NE(rings.find(0, stored.front().number), nullptr);
}

// A whole round of ten-second steps is between them: the old seconds are still there, but their
// step is not.
TEST(Rings, AStepIsNotReplacedByOneOfTheRoundBefore) {
  Rings rings;
  run(rings, kStart, 10, 100);
  rings.add(kStart + hours(24), {gpu(900)});
  rings.add(kStart + hours(24) + seconds(10), {gpu(900)});
  ASSERT_EQ(read(rings, 1, kStart + hours(24)).values[kLoad], 900u);
  rings.restore({}, kStart + hours(24) + seconds(10));
  EXPECT_EQ(read(rings, 1, kStart + hours(24)).values[kLoad], 900u);
}

TEST(Rings, TwoSamplesOfASecondKeepTheBoundOfARow) {
  const auto leases_from = [](std::uint64_t first) {
    std::vector<Entry> entries;
    for (std::uint64_t id = first; id < first + kMostLeases; ++id)
      entries.push_back({.subject = subject_of(LeaseId{id})});
    return entries;
  };
  Rings rings;
  rings.add(kStart, leases_from(1));
  rings.add(kStart, leases_from(100));
  EXPECT_EQ(decode(*rings.find(0, step_of(kStart, seconds(1)))).size(), kMostLeases);
}

TEST(Rings, RowsThatCouldNotBeStoredAreTakenAgain) {
  Rings rings;
  run(rings, kStart, 12, 100);
  const auto rows = rings.take_changed();
  EXPECT_EQ(rows.size(), 13u);
  EXPECT_TRUE(rings.take_changed().empty());
  rings.put_back(rows);
  EXPECT_EQ(rings.take_changed(), rows);
}

TEST(Rings, KeepTheLeasesThatWereThereLongest) {
  std::vector<Entry> entries = {gpu(1)};
  for (std::uint64_t id = 1; id <= 100; ++id) {
    Entry lease;
    lease.subject = subject_of(LeaseId{id});
    lease.seconds = id > 95 ? 300 : 10;
    entries.push_back(lease);
  }
  keep_most(entries);
  ASSERT_EQ(entries.size(), 1 + kMostLeases);
  EXPECT_EQ(entries[0].subject.kind, Kind::kGpu);
  EXPECT_EQ(entries[1].subject.id, 96u);
  EXPECT_EQ(entries.back().subject.id, kMostLeases - 5);
}

// docs/design/history.md has the figures.
TEST(Rings, OfAMachineWithEightGpusStayBelowTheirBound) {
  // A page of SQLite takes at least two such rows, each with its key.
  const std::size_t row = 8 * most_bytes(Kind::kGpu) + kMostLeases * most_bytes(Kind::kLease);
  EXPECT_LE(2 * (row + 32), 4096u);
  std::size_t rows = 0;
  for (const Shape& shape : kShapes) rows += static_cast<std::size_t>(shape.rows);
  EXPECT_LE((rows + 1) / 2 * 4096, 75'000'000u);
  EXPECT_LE(most_bytes_of_rows(8), 52'000'000u);
}

}  // namespace
}  // namespace gpurota::series
