// The GPU time that users have had, as the history knows it. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/history/recorder.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>

namespace gpurota::daemon {

class UsedGpuTime final {
 public:
  // All must outlive the UsedGpuTime.
  UsedGpuTime(Recorder& recorder, const config::Config& config,
              std::function<WallTime()> wall_clock)
      : recorder_(recorder), config_(config), wall_clock_(std::move(wall_clock)) {}

  // The GPU time since `from`. Empty: none is known.
  std::optional<std::chrono::seconds> gpu_time_of(uid_t uid, WallTime from);

 private:
  Recorder& recorder_;
  const config::Config& config_;
  std::function<WallTime()> wall_clock_;
  std::map<uid_t, std::chrono::seconds> known_;  // as last read from the history
};

}  // namespace gpurota::daemon
