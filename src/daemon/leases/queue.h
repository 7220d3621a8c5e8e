// The queue: the only way from a request to a lease, at once or after a wait. State thread only.
//
// A request is checked (allowances.h), placed or queued, and made a lease by LeaseManager, which
// knows nothing of requests. lease/request_queue.h decides; Queue carries the decisions out. A
// request is in the store before its user hears of it, and becomes its lease in one transaction, so
// that a kill -9 loses no place in the queue and makes no second lease. A request ends as soon as
// the process that waits, or its connection, is gone. After a restart each client that waited
// connects again with its ticket and finds its place, or the lease that was made meanwhile.
#pragma once

#include "daemon/leases/allowances.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/kept_clocks.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/leases/queue_order.h"
#include "lease/admission.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

enum class RequestStep {
  kWaits,    // it has begun to wait, or waits for something else now
  kGranted,  // it has become a lease, and left the queue
  kGone,     // it has ended without a lease
};

struct RequestNews {
  RequestStep step;
  const QueueEntry& request;
  const LeaseEntry* lease = nullptr;  // of kGranted
  const Error* why = nullptr;         // of kGone
};

class Queue final {
 public:
  // All must outlive the Queue.
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    LeaseManager& leases;
    const GpuTable& gpus;
    GpuStates& states;
    const GpuRooms& rooms;
    const Allowances& allowances;
    const QueueOrder& order;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    std::function<void(const RequestNews& news)> publish;
    // Called when a GPU may now be held for another request.
    std::function<void()> on_settled;
    // Moves a filler out of its GPU, which somebody needs.
    std::function<void(LeaseId filler, const std::string& why)> move_out;
  };

  Queue(LeaseTables& tables, Parts parts)
      : tables_(tables),
        parts_(std::move(parts)),
        clocks_({parts_.loop, parts_.states, parts_.gpus, tables_.keeping}) {}

  // Call after LeaseManager::restore().
  Result<void> restore();

  // A lease now, or a place in the queue. One of the two is set.
  struct Place {
    const LeaseEntry* lease = nullptr;
    const QueueEntry* entry = nullptr;
  };
  // A client that asks again with the same ticket gets the same lease, or place.
  tl::expected<Place, lease::Refusal> enqueue(const AcquireRequest& request);
  // A lease now or not at all. The request overtakes no waiting request, and does not wait for
  // fillers.
  tl::expected<const LeaseEntry*, lease::Refusal> acquire(const AcquireRequest& request);

  // For a program that asks again by itself. True: only fillers are in the way, and they have been
  // ordered to leave.
  bool make_way(const AcquireRequest& request);

  // Takes the request out of the queue: it was cancelled, its connection closed, or its process is
  // gone.
  void leave(RequestId id, const Error& why, std::optional<Author> by = std::nullopt);
  // Something that the decision depends on has changed: decides soon, once for many changes.
  void poke();
  void settle();

  // Whether somebody who waits would start if that lease, or that booking, were not there.
  bool would_serve_without(std::optional<LeaseId> lease, std::optional<RequestId> booking) const;
  UserLimits limits_of(uid_t uid) const { return parts_.allowances.limits_of(uid); }
  // Makes the fillers in the way leave: those in `evict` end, those in `move_out` are moved out.
  // `for_whom` returns the name of the user who needs the filler's GPU.
  void send_away(const std::vector<LeaseId>& evict, const std::vector<LeaseId>& move_out,
                 const std::function<std::string(LeaseId)>& for_whom);

 private:
  lease::Admission ask(const AcquireRequest& request);
  // The request must be within the user's allowance. A request that has waited was counted when it
  // arrived.
  tl::expected<const LeaseEntry*, lease::Refusal> make(const AcquireRequest& request,
                                                       std::vector<LeaseGpu> gpus);
  void drop_impatient(const lease::QueueDecision& decision);
  lease::QueueDecision decide();
  void count_time();
  std::optional<Place> known(const AcquireRequest& request);
  tl::expected<Place, lease::Refusal> add(const AcquireRequest& request);
  void settle_now();
  bool carry_out(const lease::QueueDecision& decision);
  void grant(const lease::Grant& grant);
  void remember(const lease::QueueDecision& decision);
  void decide_again_in_time();
  Result<void> restore_one(const ports::StoredRequest& stored);

  LeaseTables& tables_;
  Parts parts_;
  KeptClocks clocks_;
  bool poked_ = false;
  ports::EventLoop::SourcePtr come_back_;  // after a restart
  ports::EventLoop::SourcePtr keep_timer_;
};

// The first request that will start on one of these GPUs; null: none.
const QueueEntry* first_planned_on(const std::vector<QueueEntry>& entries,
                                   const std::vector<LeaseGpu>& gpus);
// Ends the reservations on these GPUs whose time is over, if the site's configuration says so.
void yield_expired(const LeaseTables& tables, LeaseManager& leases, const config::Config& config,
                   const std::vector<GpuUuid>& gpus, const std::string& to_whom);

}  // namespace gpurota::daemon
