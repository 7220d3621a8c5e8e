// Programs that asked for it (gpurota run --warn) are signalled ahead of the end of their lease.
// State thread only.
//
// The end is the earlier one of the lease's own and of the time by which it has to leave for a
// booking. An end that is known late is signalled at once. A lease that is warned is changed to
// that, and LeaseManager sends the signal.
#pragma once

#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "ports/event_loop.h"

#include <functional>
#include <map>
#include <optional>

namespace gpurota::daemon {

class EndWarnings final {
 public:
  // All must outlive the EndWarnings.
  struct Parts {
    ports::EventLoop& loop;
    LeaseManager& leases;
    Owners& owners;
    std::function<WallTime()> wall_clock;
  };

  explicit EndWarnings(Parts parts) : parts_(std::move(parts)) {}

  // The leases that the last daemon left, once.
  void restore();
  void on_lease_change(const LeaseEntry& entry, bool gone);

 private:
  void arm(const LeaseEntry& entry);
  void check(LeaseId id);
  void again(LeaseId id, Duration left);
  void start_timer(LeaseId id, Duration wait);

  Parts parts_;
  std::map<LeaseId, ports::EventLoop::SourcePtr> timers_;
};

}  // namespace gpurota::daemon
