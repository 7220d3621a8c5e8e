// Merges several time steps into one: averages (weighted by the seconds that were sampled), maxima
// and sums. Pure.
#pragma once

#include "series/row.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace gpurota::series {

class Merger {
 public:
  // Call in the order of time.
  void add(const Entry& entry);
  bool empty() const { return sums_.empty(); }
  // Returns the merged entries, and resets the merger. No entry has more than `most_seconds`
  // sampled seconds.
  std::vector<Entry> take(std::uint32_t most_seconds);

 private:
  struct Sum {
    std::uint64_t seconds = 0;
    std::array<double, kMostColumns> weighted{};
    std::array<double, kMostColumns> weights{};
    std::array<std::uint64_t, kMostColumns> values = Entry().values;
  };
  std::map<Subject, Sum> sums_;
};

}  // namespace gpurota::series
