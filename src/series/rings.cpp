#include "series/rings.h"

#include "series/merger.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gpurota::series {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t seconds_in(std::size_t ring) { return kShapes[ring].step.count(); }

std::int64_t place_of(std::size_t ring, std::int64_t number) {
  const std::int64_t rows = kShapes[ring].rows;
  return number - floor_div(number, rows) * rows;
}

// The step of the next coarser ring that contains a step.
std::int64_t step_above(std::size_t ring, std::int64_t number) {
  return floor_div(number, seconds_in(ring + 1) / seconds_in(ring));
}

}  // namespace

std::int64_t step_of(WallTime time, std::chrono::seconds step) {
  return floor_div(time.time_since_epoch().count(),
                   std::chrono::duration_cast<WallTime::duration>(step).count());
}

std::size_t most_bytes_of_rows(std::size_t gpus) {
  const std::size_t row = gpus * most_bytes(Kind::kGpu) + kMostLeases * most_bytes(Kind::kLease);
  std::size_t rows = 0;
  for (const Shape& shape : kShapes) rows += static_cast<std::size_t>(shape.rows);
  return rows * row;
}

void keep_most(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(a.subject.kind, UINT32_MAX - a.seconds, a.subject.id) <
           std::tuple(b.subject.kind, UINT32_MAX - b.seconds, b.subject.id);
  });
  const auto lease = std::find_if(entries.begin(), entries.end(), [](const Entry& each) {
    return each.subject.kind == Kind::kLease;
  });
  const auto leases = static_cast<std::size_t>(entries.end() - lease);
  if (leases > kMostLeases) entries.resize(entries.size() - (leases - kMostLeases));
}

Rings::Rings() {
  for (std::size_t ring = 0; ring < kShapes.size(); ++ring) {
    slots_[ring].resize(static_cast<std::size_t>(kShapes[ring].rows));
  }
}

Rings::Slot& Rings::slot(std::size_t ring, std::int64_t number) {
  return slots_[ring][static_cast<std::size_t>(place_of(ring, number))];
}

const Rings::Slot& Rings::slot(std::size_t ring, std::int64_t number) const {
  return const_cast<Rings*>(this)->slot(ring, number);
}

const std::string* Rings::find(std::size_t ring, std::int64_t number) const {
  const Slot& slot = this->slot(ring, number);
  return slot.number == number && !slot.data.empty() ? &slot.data : nullptr;
}

std::size_t Rings::bytes() const {
  std::size_t all = 0;
  for (const auto& ring : slots_) {
    for (const Slot& each : ring) all += each.data.size();
  }
  return all;
}

void Rings::put(std::size_t ring, std::int64_t number, std::string data) {
  Slot& slot = this->slot(ring, number);
  // The new row also overwrites the row of the previous round on the disk.
  if (slot.number != number) changed_[ring].erase(slot.number);
  slot = {number, std::move(data)};
  changed_[ring].insert(number);
}

void Rings::add(WallTime now, std::vector<Entry> entries) {
  const std::int64_t second = step_of(now, kShapes[0].step);
  if (last_ != INT64_MIN && second < last_) {
    if (last_ - second <= kPatience.count()) return;
    discard_from(second);
  }
  if (last_ != INT64_MIN && second != last_) close_left(second);
  last_ = second;
  if (entries.empty()) return;
  keep_most(entries);
  if (const std::string* const there = find(0, second)) {
    Merger merger;
    for (const Entry& each : decode(*there)) merger.add(each);
    for (const Entry& each : entries) merger.add(each);
    entries = merger.take(1);
    keep_most(entries);
  }
  put(0, second, encode(entries));
}

// Closes the coarser steps that ended before this second.
void Rings::close_left(std::int64_t second) {
  for (std::size_t ring = 1; ring < kShapes.size(); ++ring) {
    const std::int64_t left = floor_div(last_, seconds_in(ring));
    if (left != floor_div(second, seconds_in(ring))) close(ring, left);
  }
}

void Rings::close(std::size_t ring, std::int64_t number) {
  const std::int64_t finer = seconds_in(ring) / seconds_in(ring - 1);
  Merger merger;
  for (std::int64_t i = number * finer; i < (number + 1) * finer; ++i) {
    const std::string* const row = find(ring - 1, i);
    if (!row) continue;
    for (const Entry& each : decode(*row)) merger.add(each);
  }
  if (merger.empty()) return;
  auto entries = merger.take(static_cast<std::uint32_t>(seconds_in(ring)));
  keep_most(entries);
  put(ring, number, encode(entries));
}

void Rings::discard_from(std::int64_t second) {
  for (std::size_t ring = 0; ring < kShapes.size(); ++ring) {
    for (Slot& slot : slots_[ring]) {
      if (slot.data.empty() || (slot.number + 1) * seconds_in(ring) <= second) continue;
      slot.data.clear();
      changed_[ring].insert(slot.number);
    }
  }
  last_ = INT64_MIN;
}

void Rings::restore(std::vector<SeriesRow> rows, WallTime now) {
  const std::int64_t second = step_of(now, kShapes[0].step);
  Steps fed;                                             // coarser steps for which finer ones came
  std::array<std::vector<bool>, kShapes.size()> stored;  // by place: whether the disk has that step
  for (std::size_t ring = 0; ring < kShapes.size(); ++ring)
    stored[ring].resize(slots_[ring].size());
  for (SeriesRow& row : rows) {
    const auto ring = static_cast<std::size_t>(row.ring);
    if (row.ring < 0 || ring >= kShapes.size() || row.data.empty()) continue;
    Slot& slot = this->slot(ring, row.number);
    const bool is_newer = slot.data.empty() || slot.number < row.number;
    if (row.number > floor_div(second, seconds_in(ring))) {
      // The row in memory will be stored in the same place on the disk, and overwrite this one.
      if (!slot.data.empty()) continue;
      slot.number = row.number;
      changed_[ring].insert(row.number);
      continue;
    }
    if (is_newer) {
      slot = {row.number, std::move(row.data)};
      if (ring + 1 < kShapes.size()) fed[ring + 1].insert(step_above(ring, row.number));
    }
    const auto place = static_cast<std::size_t>(place_of(ring, row.number));
    if (slot.number == row.number) stored[ring][place] = true;
  }
  close_open(second, std::move(fed));
  for (std::size_t ring = 0; ring < kShapes.size(); ++ring) {
    for (std::size_t place = 0; place < slots_[ring].size(); ++place) {
      const Slot& slot = slots_[ring][place];
      if (!slot.data.empty() && !stored[ring][place]) changed_[ring].insert(slot.number);
    }
  }
  if (last_ == INT64_MIN) last_ = second;  // the current steps are closed when they are over
}

// Closes the steps that the last daemon left open. Also closes steps again that this daemon closed
// before it had all of their finer steps.
void Rings::close_open(std::int64_t second, Steps fed) {
  for (std::size_t ring = 1; ring < kShapes.size(); ++ring) {
    const std::int64_t current = floor_div(second, seconds_in(ring));
    std::set<std::int64_t> open;
    for (const Slot& finer : slots_[ring - 1]) {
      const std::int64_t number = step_above(ring - 1, finer.number);
      if (finer.data.empty() || number >= current) continue;
      const Slot& there = slot(ring, number);
      const bool is_missing = there.data.empty() || there.number < number;
      const bool is_partial =
          there.number == number && fed[ring].contains(number) && changed_[ring].contains(number);
      if (is_missing || is_partial) open.insert(number);
    }
    for (const std::int64_t number : open) {
      close(ring, number);
      if (ring + 1 < kShapes.size()) fed[ring + 1].insert(step_above(ring, number));
    }
  }
}

std::vector<SeriesRow> Rings::take_changed() {
  std::vector<SeriesRow> rows;
  for (std::size_t ring = 0; ring < kShapes.size(); ++ring) {
    for (const std::int64_t number : changed_[ring]) {
      const std::string* const data = find(ring, number);
      rows.push_back({.ring = static_cast<int>(ring),
                      .number = number,
                      .place = place_of(ring, number),
                      .data = data ? *data : std::string()});
    }
    changed_[ring].clear();
  }
  return rows;
}

void Rings::put_back(const std::vector<SeriesRow>& rows) {
  for (const SeriesRow& row : rows) {
    const auto ring = static_cast<std::size_t>(row.ring);
    if (slot(ring, row.number).number == row.number) changed_[ring].insert(row.number);
  }
}

}  // namespace gpurota::series
