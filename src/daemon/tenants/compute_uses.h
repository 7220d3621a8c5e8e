// Counts how much of a GPU's time each lease gets while that time is divided by windows, and for
// how long its submissions wait: for the windows of which other leases, or because of its own upper
// bound. Pure.
//
// Counted is what the daemon sees, step by step. So no process can report more than the time that
// has passed.
#pragma once

#include "daemon/tenants/last_minute.h"
#include "sched/compute_windows.h"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace gpurota::daemon {

class ComputeUses {
 public:
  // A process of a party, with what it says of itself now.
  struct Process {
    LeaseId lease;
    bool busy = false;
    bool waits = false;
  };
  using Processes = std::vector<Process>;

  // The parties of `windows` have changed. `parties`: the processes of each, in their order. Leases
  // that are no longer named are forgotten.
  void set_parties(const sched::ComputeWindows& windows, std::span<const Processes> parties,
                   TimePoint now);
  // Counts the time since the last call, ComputeWindows::kMostSeen at most: nobody has seen the
  // rest. Call before each ComputeWindows::step(), with the windows and the parties of that time.
  void count(const sched::ComputeWindows& windows, std::span<const Processes> parties,
             TimePoint now);
  // Nothing: the lease is in no party.
  std::optional<LastMinute> last_minute(LeaseId lease, TimePoint now) const;

 private:
  struct Use {
    HeldCount held;
    MinuteSum got;
    MinuteSum bounded;
    bool has_bound = false;
  };
  struct Party {
    Duration charged{};          // as counted so far
    std::vector<LeaseId> works;  // the leases that had work when one of them last had
  };

  void count_held(const sched::ComputeWindows& windows, std::span<const Processes> parties,
                  std::size_t index, Duration past, TimePoint now);

  std::map<LeaseId, Use> uses_;
  std::vector<Party> parties_;
  TimePoint counted_;
};

}  // namespace gpurota::daemon
