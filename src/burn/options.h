// The command line of `gpurota burn` as data. Parsing has no effects and prints nothing.
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
  std::vector<std::string> gpu_ids;  // empty: all visible GPUs
  SizeSpec memory{Bytes(), 88};
  std::optional<int> of_free;  // instead: percent of the memory free at the start
  std::optional<std::chrono::milliseconds> duration;  // empty: until a signal
  bool hold = false;                                  // only hold the memory, without computing
  bool self_test = false;
  bool json = false;
  std::string print;  // text to print before exiting
};

// `words`: argv without argv[0].
Result<Options> parse_options(const std::vector<std::string>& words);

// Parses "90", "90s", "10m", "1.5h", "2d" or "250ms"; more than zero, at most 10000 days.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace gpurota::burn
