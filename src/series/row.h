// A row of a ring: the figures of all GPUs and leases in one time step, encoded compactly. Pure.
//
// Numbers are written as LEB128, so that small ones are short. A row of a newer gpurota may have
// more columns, which are skipped.
#pragma once

#include "core/gpu.h"
#include "series/columns.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::series {

struct Subject {
  Kind kind = Kind::kGpu;
  std::uint64_t id = 0;
  auto operator<=>(const Subject&) const = default;
};
// A GPU is identified by a hash of its UUID: the same in every daemon.
Subject subject_of(const GpuUuid& gpu);
Subject subject_of(LeaseId lease);

inline constexpr std::size_t kMostColumns = 16;
inline constexpr std::uint64_t kNone = UINT64_MAX;  // not known

struct Entry {
  Subject subject;
  std::uint32_t seconds = 1;                                  // how many were sampled
  std::array<std::uint64_t, kMostColumns> values = filled();  // by GpuColumn or LeaseColumn
  bool operator==(const Entry&) const = default;

  std::optional<std::uint64_t> value(std::size_t column) const {
    return values[column] == kNone ? std::nullopt : std::optional(values[column]);
  }

 private:
  static constexpr std::array<std::uint64_t, kMostColumns> filled() {
    std::array<std::uint64_t, kMostColumns> all{};
    all.fill(kNone);
    return all;
  }
};

// A value above its column's maximum is written as the maximum.
std::string encode(const std::vector<Entry>& entries);
// The entries with a subject that `wanted` accepts. Damaged data ends the row.
template <class Wanted>
std::vector<Entry> decode(std::string_view row, const Wanted& wanted);
std::vector<Entry> decode(std::string_view row);

// The longest that an entry of this kind can be.
std::size_t most_bytes(Kind kind);

class RowReader {
 public:
  explicit RowReader(std::string_view row) : left_(row) {}
  // The next entry's subject; nothing: there are no more, or the rest is damaged.
  std::optional<Subject> next();
  // The entry whose subject next() returned; nothing: it is damaged.
  std::optional<Entry> entry();

 private:
  std::string_view left_;  // after the current entry
  std::string_view body_;  // of the current entry
  Subject subject_;
};

template <class Wanted>
std::vector<Entry> decode(std::string_view row, const Wanted& wanted) {
  std::vector<Entry> entries;
  RowReader reader(row);
  while (const auto subject = reader.next()) {
    if (!wanted(*subject)) continue;
    if (const auto entry = reader.entry()) entries.push_back(*entry);
  }
  return entries;
}

}  // namespace gpurota::series
