// Signals programs before the end of their lease, if they asked for it (gpurota run --warn). State
// thread only.
//
// The end is the lease's own end, or the time by which the lease has to leave for a booking,
// whichever is earlier. If the end becomes known only when the warning is already due, the signal
// is sent at once. EndWarnings marks the lease as warned, and LeaseManager sends the signal.
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
    const LeaseTables& tables;
    LeaseManager& leases;
    Owners& owners;
    std::function<WallTime()> wall_clock;
  };

  explicit EndWarnings(Parts parts) : parts_(std::move(parts)) {}

  // Takes over the leases of the last daemon. Call once.
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
