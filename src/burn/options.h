// The command line of `gpurota burn` as data. Parsing touches nothing and prints nothing.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::burn {

struct Options {
  std::vector<std::string> gpu_ids;  // empty: all that are visible
  SizeSpec memory{Bytes(), 88};
  std::optional<int> of_free;  // per cent of what is free at the beginning, instead
  std::optional<std::chrono::milliseconds> duration;  // else until told to end
  bool hold = false;                                  // hold the memory, compute nothing
  bool self_test = false;
  bool json = false;
  std::string print;  // and be done
};

// `words`: argv without argv[0].
Result<Options> parse_options(const std::vector<std::string>& words);

// "90", "90s", "10m", "1.5h", "2d", "250ms"; more than nothing, at most 10000 days.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace gpurota::burn
