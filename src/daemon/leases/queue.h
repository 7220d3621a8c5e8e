// Those who wait for a lease: taken in, kept, told, served. State thread only.
//
// What happens is decided by lease/request_queue.h; here it is carried out. A request is in the store
// before its user hears of it, and becomes its lease in one transaction, so that a kill -9 loses no
// place in the queue and makes no second lease. It ends at once with the process that waits, or its
// connection. After a restart whoever waited comes back with its ticket and finds its place, or the lease that was
// made meanwhile.
#pragma once

#include "core/topology.h"
#include "daemon/leases/lease_manager.h"
#include "lease/keeping.h"
#include "lease/request_queue.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct QueueEntry {
  RequestId id;
  AcquireRequest asked;
  WallTime since;
  TrackedProcess holder;
  lease::Waiting waiting;  // as last decided
  lease::Reason reason;
  lease::Keeping keeping;
  bool here = true;  // its client is connected; after a restart not yet
};

class Queue {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    LeaseManager& leases;
    const GpuTable& gpus;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    // A request waits, or what it waits for has changed.
    std::function<void(const QueueEntry&)> on_change;
    // It is no more: it has become this lease, or it ended for this reason.
    std::function<void(const QueueEntry&, const LeaseEntry&)> on_granted;
    std::function<void(const QueueEntry&, const Error&)> on_gone;
    // What is held for whom may have changed.
    std::function<void()> on_settled = {};
    // A filler in the way of somebody who fits beside what of it stays.
    std::function<void(LeaseId, const std::string& why)> move_out = {};
  };

  explicit Queue(Parts parts) : parts_(std::move(parts)) {}

  // After that of the leases.
  Result<void> restore();

  // A lease now, or a place in the queue. One of the two is set.
  struct Place {
    const LeaseEntry* lease = nullptr;
    const QueueEntry* entry = nullptr;
  };
  // The same user with the same ticket gets what they have already.
  tl::expected<Place, lease::Refusal> enqueue(const AcquireRequest& request);
  // For a lease that is wanted now or not at all; nobody who waits is passed. It does not wait for
  // fillers either.
  tl::expected<std::vector<LeaseGpu>, lease::Refusal> choose(const AcquireRequest& request);

  // For one that asks again by itself. True if fillers are all that is in its way: they are told to go.
  bool make_way(const AcquireRequest& request);

  // Out of the queue: cancelled, its connection closed, its process gone.
  void leave(RequestId id, const Error& why);
  // Something that the decision depends on has changed: decides soon, once for many changes.
  void poke();
  void settle();

  const std::vector<QueueEntry>& entries() const { return entries_; }
  const QueueEntry* find(RequestId id) const;
  std::optional<RequestId> held_for(const GpuUuid& gpu) const;
  // What the user would have of it all.
  lease::Holding held_by(uid_t uid) const;
  // The first who will start on one of these GPUs.
  const QueueEntry* first_planned_on(const std::vector<LeaseGpu>& gpus) const;
  void set_topology(Topology topology) { topology_ = std::move(topology); }

 private:
  struct Answer {
    std::vector<LeaseGpu> gpus;
    std::optional<lease::Refusal> refusal;
    bool way_is_made = false;  // fillers are all that is in its way
  };
  Answer ask(const AcquireRequest& request);
  std::string who_needs(LeaseId filler, const lease::QueueDecision& decision) const;
  void move_out(LeaseId filler, const std::string& why);
  void drop_impatient(const lease::QueueDecision& decision);
  lease::Request request_of(RequestId id, const AcquireRequest& asked) const;
  std::vector<lease::Request> requests() const;
  lease::QueueDecision decide(const std::vector<lease::Request>& requests) const;
  std::optional<Place> known(const AcquireRequest& request);
  tl::expected<Place, lease::Refusal> add(const AcquireRequest& request);
  void settle_now();
  bool carry_out(const lease::QueueDecision& decision);
  void grant(const lease::Grant& grant);
  void remember(const lease::QueueDecision& decision);
  bool look_at_keeping();
  void decide_again_in_time();
  Result<void> restore_one(const ports::StoredRequest& stored);
  QueueEntry take(RequestId id);

  Parts parts_;
  Topology topology_;
  std::vector<QueueEntry> entries_;  // in the order they came
  std::map<GpuUuid, RequestId> held_;
  bool poked_ = false;
  ports::EventLoop::SourcePtr come_back_;  // after a restart
  ports::EventLoop::SourcePtr keep_timer_;
};

}  // namespace gpurota::daemon
