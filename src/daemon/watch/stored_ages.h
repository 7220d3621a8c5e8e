// Stores the ages of the things that the watch sees, so that they survive a restart of the daemon.
// State thread only; a part of WatchKeeper.
#pragma once

#include "daemon/gpus/gpu_states.h"
#include "ports/processes.h"
#include "watch/watcher.h"

#include <functional>
#include <map>
#include <vector>

namespace gpurota::daemon {

class StoredAges {
 public:
  // All must outlive the StoredAges.
  struct Parts {
    const GpuTable& gpus;
    GpuStates& states;
    ports::Processes& processes;
    std::function<WallTime()> wall_clock;
  };

  explicit StoredAges(Parts parts) : parts_(std::move(parts)) {}

  // Gives `watcher` the ages that the last daemon has stored. Call before the first reading.
  void restore(watch::Watcher& watcher, TimePoint now);
  // Stores what has changed. Call at each change, so that a kill -9 loses nothing.
  void store(const watch::Watcher& watcher, TimePoint now);

 private:
  using Ages = std::vector<watch::Age>;

  std::vector<ports::StoredAge> rows(const Ages& ages, TimePoint now) const;

  Parts parts_;
  std::map<GpuUuid, Ages> stored_;
};

}  // namespace gpurota::daemon
