// The figures of GPUs and leases over time, at three resolutions. The steps of each resolution are
// a ring: a new step replaces the step one round before it. Pure.
//
// When a coarser step is over, it is computed from its finer steps. So a new daemon continues where
// the last one was stopped or killed. Time in which a machine was not sampled (it was off,
// suspended, or had no daemon) is a gap.
#pragma once

#include "core/series_row.h"
#include "core/time.h"
#include "series/row.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace gpurota::series {

struct Shape {
  std::chrono::seconds step;
  std::int64_t rows;
};
inline constexpr std::array<Shape, 3> kShapes = {{{std::chrono::seconds(1), 900},    // 15 minutes
                                                  {std::chrono::seconds(10), 8640},  // 24 hours
                                                  {std::chrono::seconds(300), 25920}}};  // 90 days
// The most leases in one row: those that were there longest, and among equals the oldest. The limit
// bounds the size of a row, and so of all rings.
inline constexpr std::size_t kMostLeases = 32;
// If the clock is set back by at most this, samples are dropped until it has caught up. If the
// clock is set back further, the steps that are now in the future are discarded.
inline constexpr std::chrono::seconds kPatience{10};

// The most bytes that all rows of a machine with this many GPUs take.
std::size_t most_bytes_of_rows(std::size_t gpus);

class Rings {
 public:
  Rings();

  // Adds a sample of one second. Times may come in any order.
  void add(WallTime now, std::vector<Entry> entries);
  // Takes over the stored rows; entries already in memory take precedence. Rows later than `now`
  // are discarded, on the disk, too. Entries in memory that are not stored count as changed.
  void restore(std::vector<SeriesRow> rows, WallTime now);
  // The rows that have changed since the last call; a row without data is to be deleted. If storing
  // them fails, call put_back().
  std::vector<SeriesRow> take_changed();
  void put_back(const std::vector<SeriesRow>& rows);

  // The row of a step, counted from 1970; null: nothing was sampled in it, or it is too long ago.
  const std::string* find(std::size_t ring, std::int64_t number) const;
  std::size_t bytes() const;  // of all rows

 private:
  struct Slot {
    std::int64_t number = 0;
    std::string data;  // empty: no row
  };
  Slot& slot(std::size_t ring, std::int64_t number);
  const Slot& slot(std::size_t ring, std::int64_t number) const;
  void put(std::size_t ring, std::int64_t number, std::string data);
  // Makes a step from its steps in the finer ring.
  void close(std::size_t ring, std::int64_t number);
  void close_left(std::int64_t second);
  using Steps = std::array<std::set<std::int64_t>, kShapes.size()>;  // by ring: numbers of steps
  void close_open(std::int64_t second, Steps fed);
  // Discards all steps that end after this second. The coarser step that contains this second is
  // lost if the finer ring no longer has its steps.
  void discard_from(std::int64_t second);

  std::array<std::vector<Slot>, kShapes.size()> slots_;
  Steps changed_;
  std::int64_t last_ = INT64_MIN;  // second of the last sample
};

// The number of the step that contains this time.
std::int64_t step_of(WallTime time, std::chrono::seconds step);
// Keeps the leases of a row within kMostLeases.
void keep_most(std::vector<Entry>& entries);

}  // namespace gpurota::series
