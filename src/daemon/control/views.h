// The daemon's views of leases, GPUs and processes, for each viewer. State thread only.
//
// Privacy is decided here only: every view leaves out the facts that only their owner may see.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/availability.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/leases/queue_order.h"
#include "daemon/tenants/held_back.h"
#include "daemon/tenants/latency_pages.h"
#include "daemon/tenants/tenant_table.h"
#include "daemon/users/users.h"
#include "daemon/watch/driver_limits.h"
#include "daemon/watch/watch_keeper.h"
#include "lease/grant_book.h"
#include "proto/methods.h"

#include <functional>
#include <set>

#include <sys/types.h>

namespace gpurota::daemon {

class ParkKeeper;
class TurnKeeper;

class Views {
 public:
  struct Parts {
    const config::Config& config;
    ports::Processes& processes;
    const GpuTable& gpus;
    const LeaseTables& tables;
    const QueueOrder& order;
    const Availability& availability;
    const lease::GrantBook& grants;
    const TenantTable& tenants;
    const LatencyPages& latency;
    const HeldBack& held_back;
    Attribution& attribution;
    const Users& users;
    const WatchKeeper& watch;
    const TurnKeeper& turns;
    const DriverLimits& driver_limits;
    const ParkKeeper& parker;
    const GpuStates& states;
    const ports::EventLoop& loop;
    std::function<WallTime()> wall_clock;
  };

  explicit Views(Parts parts) : parts_(std::move(parts)) {}

  bool is_administrator(uid_t viewer) const { return parts_.users.is_administrator(viewer); }
  // Whether `viewer` may see facts that are private to `owner`. Facts without an owner are private
  // to administrators. Every view decides by this function alone.
  bool sees_all(uid_t viewer, std::optional<uid_t> owner) const {
    return viewer == owner || is_administrator(viewer) ||
           parts_.config.privacy == config::Privacy::kOpen;
  }
  // The viewer, unless the viewer sees everything. Empty: the viewer sees everything, so all such
  // viewers can share one view.
  std::optional<uid_t> like(uid_t viewer) const {
    return sees_all(viewer, std::nullopt) ? std::nullopt : std::optional(viewer);
  }
  // An event about refused calls or grants counts what its user tried, and an event about work that
  // was held back tells how much the user's programs work. So only viewers who see all of that user
  // get these events.
  bool may_know_of(const ports::StoredEvent& stored, uid_t viewer) const;
  proto::Event event(const ports::StoredEvent& stored, uid_t viewer) const;
  proto::Lease lease(const LeaseEntry& entry, uid_t viewer) const;
  proto::TurnGpu turns(const GpuEntry& gpu, uid_t viewer) const;
  // Empty where the queue is in the order of arrival.
  std::optional<proto::FairShare> share(uid_t uid) const;
  proto::Request request(const QueueEntry& entry, uid_t viewer) const;
  // Why the request waits. Only viewers who see all of the request get the remedy.
  proto::Reason wait_reason(const QueueEntry& entry, uid_t viewer) const;
  proto::Booking booking(const BookingEntry& entry, uid_t viewer) const;
  proto::Status::Reply status(uid_t viewer) const;
  std::string user_name(uid_t uid) const { return parts_.processes.user_name(uid); }
  proto::ListProcesses::Reply processes(uid_t viewer, std::optional<LeaseId> lease) const;

 private:
  // If the queue is not in the order of arrival, adds why the request is at its place.
  void show_order(const QueueEntry& entry, proto::Request& request) const;
  proto::Gpu gpu(const GpuEntry& entry) const;
  // Adds the lease's processes on that GPU to `pids`.
  proto::LeaseGpu lease_gpu(LeaseId id, const LeaseGpu& share, std::set<pid_t>& pids) const;
  // Nothing: nothing is known of a second yet.
  std::optional<proto::LastMinute> last_minute(LeaseId id) const;
  // Adds the lease's latency class and compute share.
  void show_compute(const LeaseEntry& entry, proto::Lease& lease) const;
  // Adds who enforces the lease's limit.
  void show_enforcement(const LeaseEntry& entry, proto::Lease& lease) const;
  bool is_on_instance(pid_t pid, const GpuEntry& whole) const;
  proto::Finding finding(const watch::Finding& found, uid_t viewer) const;
  std::optional<proto::Container> container_of(pid_t pid) const;
  std::string strangers_on(const GpuUuid& gpu) const;
  proto::Process process(const GpuEntry& gpu, const GpuProcess& process, uid_t viewer) const;
  void add_parked(const LeaseEntry& entry, uid_t viewer, proto::ListProcesses::Reply& reply) const;
  proto::TurnLease turn(const LeaseEntry& entry, const GpuUuid& gpu, uid_t viewer) const;
  // Returns the same wall time for the same moment at each call, unless the clock is set. So
  // clients recognize an item that is listed again.
  WallTime wall_time_of(TimePoint moment) const;
  // NVML's figure, else what libgpurota counts on that GPU. Empty: neither is known.
  std::optional<Bytes> used_by(const GpuProcess& process, const GpuUuid& gpu) const;
  std::optional<Bytes> used_by(LeaseId lease, const LeaseGpu& share, const GpuEntry& gpu) const;
  // The process's own lease, or the reservation of its user that covers it on this GPU.
  std::optional<LeaseId> lease_of(pid_t pid, const GpuUuid& gpu) const;

  Parts parts_;
  mutable std::optional<WallTime::duration> since_boot_;  // wall time minus loop time
};

}  // namespace gpurota::daemon
