// A hash table from a 64-bit key to a small value, in memory of its own: open addressing, linear
// probing, deletion by shifting back. Not locked; owners hold a Mutex. All-zero memory is an empty
// table, so a table that a fork wiped is simply empty. Key 0 is not a key.
#pragma once

#include "interposer/os/sys.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gpurota::interposer {

inline uint64_t mix_key(uint64_t key) {
  key ^= key >> 32;
  key *= 0x9e3779b97f4a7c15u;
  return key ^ (key >> 29);
}

template <typename Value>
class VaMap {
 public:
  size_t size() const { return count_; }

  // nullptr if the key is not in the table. Valid until the next put or take.
  Value* find(uint64_t key) {
    if (count_ == 0) return nullptr;
    for (size_t i = home(key);; i = next(i)) {
      if (cells_[i].key == key) return &cells_[i].value;
      if (cells_[i].key == 0) return nullptr;
    }
  }

  // The value of `key`, made zero if it is new. nullptr when there is no memory for it.
  Value* put(uint64_t key) {
    if ((count_ + 1) * 4 > capacity_ * 3 && !grow() && count_ + 1 >= capacity_) return nullptr;
    size_t i = home(key);
    for (; cells_[i].key != 0; i = next(i)) {
      if (cells_[i].key == key) return &cells_[i].value;
    }
    cells_[i].key = key;
    cells_[i].value = Value{};
    ++count_;
    return &cells_[i].value;
  }

  // Removes `key`; false if it was not there.
  bool take(uint64_t key, Value* out) {
    Value* found = find(key);
    if (found == nullptr) return false;
    *out = *found;
    erase_cell(static_cast<size_t>(
        reinterpret_cast<Cell*>(reinterpret_cast<char*>(found) - offsetof(Cell, value)) - cells_));
    return true;
  }

  // Calls `gone(key, value)` for each entry for which `test(value)` is true, and removes the entry.
  template <typename Test, typename Gone>
  void remove_if(Test test, Gone gone) {
    for (size_t i = 0; i < capacity_;) {
      if (cells_[i].key == 0 || !test(cells_[i].value)) {
        ++i;
        continue;
      }
      const Cell cell = cells_[i];
      erase_cell(i);  // may shift another entry here: look at i again
      gone(cell.key, cell.value);
    }
  }

  template <typename Visit>
  void for_each(Visit visit) {
    for (size_t i = 0; i < capacity_; ++i) {
      if (cells_[i].key != 0) visit(cells_[i].key, cells_[i].value);
    }
  }

 private:
  struct Cell {
    uint64_t key;
    Value value;
  };

  size_t home(uint64_t key) const { return static_cast<size_t>(mix_key(key)) & (capacity_ - 1); }
  size_t next(size_t i) const { return (i + 1) & (capacity_ - 1); }

  void erase_cell(size_t hole) {
    --count_;
    for (size_t i = next(hole); cells_[i].key != 0; i = next(i)) {
      const size_t distance_home = (i - home(cells_[i].key)) & (capacity_ - 1);
      const size_t distance_hole = (i - hole) & (capacity_ - 1);
      if (distance_home < distance_hole) continue;
      cells_[hole] = cells_[i];
      hole = i;
    }
    cells_[hole].key = 0;
  }

  // The memory is not copied to a forked child, which starts with an empty table and cannot reach
  // it.
  bool grow() {
    ErrnoGuard guard;
    const size_t wider = capacity_ == 0 ? 128 : capacity_ * 2;
    auto* cells = static_cast<Cell*>(map_memory(wider * sizeof(Cell), MADV_DONTFORK));
    if (cells == nullptr) return false;
    Cell* old = cells_;
    const size_t old_capacity = capacity_;
    cells_ = cells;
    capacity_ = wider;
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old[i].key == 0) continue;
      size_t to = home(old[i].key);
      while (cells_[to].key != 0) to = next(to);
      cells_[to] = old[i];
    }
    if (old != nullptr) ::munmap(old, old_capacity * sizeof(Cell));
    return true;
  }

  Cell* cells_;
  size_t capacity_;
  size_t count_;
};

}  // namespace gpurota::interposer
