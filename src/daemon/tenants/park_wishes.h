// The parked leases that are to come back to their GPUs, and what they wait for
// (docs/design/park.md). State thread only. ParkKeeper makes the wishes, stores them as the state
// of the leases, and brings the leases back.
//
// The leases come back in the order of their wishes: a lease that waits counts for those after it.
#pragma once

#include "daemon/leases/return_room.h"
#include "daemon/tenants/turn_keeper.h"

#include <optional>
#include <vector>

namespace gpurota::daemon {

class ParkWishes {
 public:
  // All must outlive the ParkWishes.
  struct Parts {
    ports::EventLoop& loop;
    const LeaseTables& tables;
    const TurnKeeper& turns;
    ReturnRoom room;
  };

  explicit ParkWishes(Parts parts) : parts_(std::move(parts)) {}

  void add(LeaseId lease, const Author& by) { wishes_.push_back({lease, by}); }
  void remove(LeaseId lease);
  bool empty() const { return wishes_.empty(); }
  std::vector<LeaseId> leases() const;
  // The user who made the wish; nothing: there is no wish for the lease.
  std::optional<Author> author(LeaseId lease) const;
  // Whether the lease of this wish has room now. If not, waits_for() says why not.
  bool has_room(LeaseId lease);
  // The reason why the lease waits; null: it does not wait, or has not been checked.
  const Reason* waits_for(LeaseId lease) const;
  // A count that grows with each change of what a lease waits for.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Wish {
    LeaseId lease;
    Author by{};
    std::optional<Reason> why{};
  };

  std::optional<Reason> find_obstacle(LeaseId lease);

  Parts parts_;
  std::vector<Wish> wishes_;  // in the order in which they were made
  std::uint64_t changes_ = 0;
};

}  // namespace gpurota::daemon
