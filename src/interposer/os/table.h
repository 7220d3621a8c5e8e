// A growing array of records whose addresses never change: segments of our own memory, and a free
// list. Not locked. All-zero memory is an empty table. Index 0 is never given out.
#pragma once

#include "interposer/os/sys.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

template <typename T>
class Table {
 public:
  // The index of a zeroed record; 0 when there is no memory for a record.
  uint32_t take() {
    if (free_ == 0 && !grow()) return 0;
    const uint32_t index = free_;
    Cell& cell = at(index);
    free_ = cell.next_free;
    cell = Cell{};
    cell.used = true;
    return index;
  }
  void give_back(uint32_t index) {
    Cell& cell = at(index);
    cell.used = false;
    cell.next_free = free_;
    free_ = index;
  }
  T& operator[](uint32_t index) { return at(index).value; }
  const T& operator[](uint32_t index) const {
    return segment_[index / kPerSegment][index % kPerSegment].value;
  }
  bool is_used(uint32_t index) { return index != 0 && index < end() && at(index).used; }
  // Above every index that was ever given out.
  uint32_t end() const { return segments_ * kPerSegment; }

 private:
  struct Cell {
    T value;
    uint32_t next_free;
    bool used;
  };
  static constexpr uint32_t kPerSegment = 1024;
  static constexpr uint32_t kSegments = 1024;

  Cell& at(uint32_t index) { return segment_[index / kPerSegment][index % kPerSegment]; }

  bool grow() {
    if (segments_ == kSegments) return false;
    ErrnoGuard guard;
    auto* cells = static_cast<Cell*>(map_memory(kPerSegment * sizeof(Cell), MADV_DONTFORK));
    if (cells == nullptr) return false;
    segment_[segments_++] = cells;
    for (uint32_t i = kPerSegment; i-- > 0;) {
      const uint32_t index = (segments_ - 1) * kPerSegment + i;
      if (index == 0) break;
      cells[i].next_free = free_;
      free_ = index;
    }
    return true;
  }

  Cell* segment_[kSegments] = {};
  uint32_t segments_ = 0;
  uint32_t free_ = 0;
};

}  // namespace gpurota::interposer
