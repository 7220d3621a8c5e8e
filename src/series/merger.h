// Makes one step of time of several: averages, each weighted by the seconds that were sampled, the
// highest, sums. Pure.
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
  // In the order of time.
  void add(const Entry& entry);
  bool empty() const { return sums_.empty(); }
  // Returns the merged entries, and begins anew. No entry says that more than `most_seconds` were
  // sampled.
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
