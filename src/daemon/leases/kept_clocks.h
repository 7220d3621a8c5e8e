// The clocks of lease/keeping.h: for how long plans have kept requests from GPUs. Counted between
// the decisions of the queue, stored now and then, and restored. Of the queue; state thread only.
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
  // A crash loses so much of the time for which requests were blocked.
  static constexpr Duration kStoreEvery = std::chrono::minutes(1);

  // All outlive it.
  struct Parts {
    ports::EventLoop& loop;
    GpuStates& states;
    const GpuTable& gpus;
    lease::Keeping& keeping;
  };
  explicit KeptClocks(Parts parts) : parts_(parts) {}

  // Those of the GPUs; those of requests are restored with them. Time counts from now on.
  void restore();
  void restore(RequestId request, std::chrono::milliseconds blocked,
               std::chrono::milliseconds protected_for) {
    parts_.keeping.restore(request, blocked, protected_for);
  }

  void set_rules(lease::KeepingRules rules) { parts_.keeping.set_rules(rules); }
  // Adds the time since the last decision to the clocks of requests that plans make wait.
  // Periodically `store` is called for each of these.
  void count(const std::function<void(RequestId)>& store);
  // A decision says this, from now on.
  void set_facts(lease::KeepingFacts facts) { facts_ = std::move(facts); }
  void on_start(RequestId request, const std::vector<LeaseGpu>& gpus);
  void forget(RequestId request) { parts_.keeping.forget(request); }
  // In how much time a clock changes what is decided, or is to be stored.
  std::optional<Duration> next() const;

 private:
  Parts parts_;
  lease::KeepingFacts facts_;  // of the last decision
  TimePoint counted_at_{};
  TimePoint stored_at_{};
};

}  // namespace gpurota::daemon
