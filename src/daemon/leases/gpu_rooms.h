// How much room there is on each GPU: what its leases take, what turns need, and what stays of
// fillers. State thread only.
#pragma once

#include "config/config.h"
#include "core/topology.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "lease/grant_book.h"
#include "lease/placement.h"
#include "lease/request_queue.h"
#include "ports/processes.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct BookingEntry;
struct LeaseEntry;
struct LeaseTables;

// The memory of a GPU that its swap leases need together to take turns. Fillers are left out: the
// memory of a filler that stays on the GPU is counted separately.
class TurnNeeds {
 public:
  struct Need {
    Bytes most;   // `wired` plus the largest movable memory of a lease
    Bytes wired;  // the leases' memory that cannot be moved
  };
  virtual ~TurnNeeds() = default;
  // `counts`: whether a lease is among them; parked leases never are.
  virtual Need need(const GpuUuid& gpu, const std::function<bool(LeaseId)>& counts) const = 0;
};

// The memory that a lease keeps on its GPUs when it is moved to host memory: the most on any of
// them.
struct LeaseStay {
  Bytes stays;
  bool moved_out = false;
};

// Whether the lease has no stated end, and the site lets such leases continue until a booking is
// used.
bool leaves_for_bookings(const Lease& lease, const config::Config& config);

class GpuRooms {
 public:
  // All must outlive the GpuRooms.
  struct Parts {
    const LeaseTables& tables;
    const GpuTable& gpus;
    const GpuStates& states;
    const lease::GrantBook& grants;
    ports::Processes& processes;
    const config::Config& config;
    const TurnNeeds& turns;
    // The memory of a filler that stays on its GPU when it is moved out; nothing: it can only end.
    std::function<std::optional<LeaseStay>(LeaseId filler)> stay_of;
  };

  explicit GpuRooms(Parts parts) : parts_(std::move(parts)) {}
  void set_topology(Topology topology) { topology_ = std::move(topology); }
  const Topology& topology() const { return topology_; }

  // The input of a decision, at one moment.
  struct Machine {
    std::vector<lease::GpuRoom> rooms;
    std::vector<lease::Occupant> leases;
    std::vector<lease::Booked> bookings;
    const Topology& topology;

    // The view of this machine with these requests. The Machine and the arguments outlive the view.
    lease::QueueView view(const std::vector<lease::Request>& queue,
                          const lease::Keeping& keeping) const {
      return {queue, rooms, leases, topology, bookings, &keeping};
    }
  };
  Machine machine() const { return {list(), occupants(), booked(), topology_}; }
  // As if these leases were not on their GPUs.
  Machine machine_without(const std::set<LeaseId>& leases) const;
  // The GPUs as placement sees them, and the leases as the queue does.
  std::vector<lease::GpuRoom> list() const;
  // Like list(), as if all leases but `only`, and all programs without a lease, had ended.
  std::vector<lease::GpuRoom> list_with(const std::vector<LeaseId>& only) const;
  std::vector<lease::Occupant> occupants() const;
  // The memory that swap leases may have of the GPU when nobody else is there.
  Bytes turn_capacity(const GpuEntry& gpu) const;
  // The bookings that have not begun, except `without`.
  std::vector<lease::Booked> booked(std::optional<RequestId> without = std::nullopt) const;
  lease::Booked booked_of(const BookingEntry& entry) const;

 private:
  // The rooms with the leases for which `counts` is true; `others`: also with what else uses the
  // GPUs.
  using Counts = std::function<bool(LeaseId)>;
  std::vector<lease::GpuRoom> list(const Counts& counts, bool others) const;
  // The part of the machine's memory that is promised to leases on other GPUs with unified memory.
  Bytes promised_elsewhere(const GpuInfo& gpu) const;
  void add_use(lease::GpuRoom& room, const Counts& counts) const;
  void add_lease(lease::GpuRoom& room, const LeaseEntry& entry, const LeaseGpu& share) const;
  void add_filler(lease::GpuRoom& room, const LeaseEntry& entry) const;
  // The shares of the lease that count on their GPUs.
  std::vector<LeaseGpu> shares_of(const Lease& lease) const;

  Parts parts_;
  Topology topology_;
};

}  // namespace gpurota::daemon
