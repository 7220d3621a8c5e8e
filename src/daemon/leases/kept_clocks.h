// The clocks of lease/keeping.h: for how long plans have kept requests from GPUs. The time is
// counted between the decisions of the queue, stored now and then, and restored. Part of Queue;
// state thread only.
#pragma once

#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "lease/keeping.h"
#include "ports/event_loop.h"

#include <functional>
#include <optional>

namespace gpurota::daemon {

class KeptClocks {
 public:
  // A crash loses at most this much of the time for which requests were blocked.
  static constexpr Duration kStoreEvery = std::chrono::minutes(1);

  // All must outlive the KeptClocks.
  struct Parts {
    ports::EventLoop& loop;
    GpuStates& states;
    const GpuTable& gpus;
    lease::Keeping& keeping;
  };
  explicit KeptClocks(Parts parts) : parts_(parts) {}

  // Restores the clocks of the GPUs; those of requests are restored with the requests. Time counts
  // from now on.
  void restore();
  void restore(RequestId request, std::chrono::milliseconds blocked,
               std::chrono::milliseconds protected_for) {
    parts_.keeping.restore(request, blocked, protected_for);
  }

  void set_rules(lease::KeepingRules rules) { parts_.keeping.set_rules(rules); }
  // Adds the time since the last decision to the clocks of requests that plans make wait. Calls
  // `store` for each of these requests every kStoreEvery.
  void count(const std::function<void(RequestId)>& store);
  // Sets the facts of the last decision, by which the clocks count from now on.
  void set_facts(lease::KeepingFacts facts) { facts_ = std::move(facts); }
  void on_start(RequestId request, const std::vector<LeaseGpu>& gpus);
  void forget(RequestId request) { parts_.keeping.forget(request); }
  // The time until a clock changes what is decided, or is to be stored.
  std::optional<Duration> next() const;

 private:
  Parts parts_;
  lease::KeepingFacts facts_;  // of the last decision
  TimePoint counted_at_{};
  TimePoint stored_at_{};
};

}  // namespace gpurota::daemon
