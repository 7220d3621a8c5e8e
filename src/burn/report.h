// The output of `gpurota burn`: periodic lines for each GPU, a summary, or one line of JSON. Pure.
#pragma once

#include "base/bytes.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::burn {

// The work and the sensor readings of a GPU so far.
struct Stats {
  Bytes target, held, most_held;
  std::uint64_t checked_bytes = 0;
  double flops = 0;
  std::uint64_t wrong_words = 0;    // in memory
  std::uint64_t wrong_bits = 0;     // bits that differed in these words
  std::uint64_t wrong_results = 0;  // of arithmetic
  std::uint64_t handed_back = 0;    // chunks given back
  double seconds = 0;
  std::optional<int> temperature_c;  // maximum
  std::optional<double> power_watts;
  std::optional<bool> self_test;  // whether the injected errors were found
  std::optional<std::string> error;
  bool is_faulty = false;  // `error` is the GPU's own: uncorrectable memory

  bool is_wrong() const { return wrong_words + wrong_results > 0 && !self_test; }
};

struct GpuReport {
  int index = 0;
  std::string uuid, name;
  Stats stats;
};

// The reason for the end.
enum class End { kTime, kSignal, kFailed, kTested };

// `before`: the stats at the previous such line; rates are for the time since then.
std::string progress_line(const GpuReport& gpu, const Stats& before, bool hold);
std::string summary_line(const GpuReport& gpu, bool hold);
std::string json_line(const std::vector<GpuReport>& gpus, End end);

inline constexpr int kExitFine = 0, kExitFailed = 1, kExitUsage = 2, kExitWrong = 3;
// `signal`: the signal that ended the program early, or 0.
int exit_code(const std::vector<GpuReport>& gpus, int signal);

}  // namespace gpurota::burn
