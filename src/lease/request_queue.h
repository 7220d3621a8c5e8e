// The queue's decision: which requests get GPUs now, and which wait for which GPUs. Pure: the same
// queue, leases and time give the same decision. The daemon calls it after every change and carries
// out what it says.
//
// First come, first served; all or nothing. The requests are planned in their order: each gets the
// earliest time at which it fits beside the current leases and the plans of those before it. A
// request that fits now starts now. For any other, the GPUs that it will start on are kept: once
// free they are held for it, and a later request may only use them if an enforced end gives them
// back before the planned start. Keeping has an end: keeping.h. If nobody knows when a request
// starts, its plan leaves the GPUs to nobody but fillers.
//
// A GPU that is broken, draining or in unreserved use is not planned with: a request that cannot do
// without it waits, but holds nothing meanwhile. Fillers leave when somebody needs their GPU, so
// for all others they are not there; they themselves take what nobody has, held or not. A filler
// has its GPU to itself, whatever its limit is. A filler that can be moved to host memory is moved
// for requests that fit beside what of it stays; for other requests, and for those that want the
// whole GPU, it ends.
//
// A booking is a promise. A request with a stated end starts if it ends before. One without
// (`unbooked_for`) starts if nothing is booked there for so long, and leaves when the booking is
// used (bookings.h).
#pragma once

#include "core/lease.h"
#include "core/topology.h"
#include "lease/gpu_timeline.h"
#include "lease/keeping.h"
#include "lease/placement.h"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpurota::lease {

// So many requests are planned, places going round by owner. The others keep their places in the
// order, and start when they fit beside what is planned.
constexpr int kMaxPlanned = 128;

struct Request {
  RequestId id;
  LeaseKind kind = LeaseKind::kRun;
  std::string user;  // as shown: "alice"
  PlacementRequest placement;
  std::optional<std::chrono::milliseconds> lasts;  // enforced from its start on; empty: unknown
  // A lease with this leaves when a booking is used, so it starts where nothing is booked for so
  // long; empty: the lease starts where nothing is booked as long as it lasts.
  std::optional<std::chrono::milliseconds> unbooked_for{};
  uid_t owner = 0;                     // places in the plan go round by owner
  std::chrono::milliseconds waited{};  // since it came
};

// A lease as the queue sees it.
struct Occupant {
  LeaseId id;
  LeaseKind kind = LeaseKind::kRun;
  std::string user;
  std::vector<LeaseGpu> gpus;
  std::optional<WallTime> ends;  // enforced; empty: nobody knows
  bool ending = false;           // goes any moment
  bool expired = false;          // its time is over, and the site lets it go on
  // Of a filler or a swap lease that can be moved to host memory: the most that stays on one of its
  // GPUs. Empty: the lease can only end.
  std::optional<Bytes> stays{};
  bool moved_out = false;  // its memory is in host memory
  uid_t uid = 0;           // its owner
  WallTime since{};
  bool leaves_for_bookings = false;  // for those of others that were placed before `since`
};

// GPUs that are promised to somebody from a time on (bookings.h).
struct Booked {
  RequestId id;
  std::string user;
  std::vector<LeaseGpu> gpus;
  WallTime from;
  WallTime until;  // kNever: the site lets reservations go on when they are over
  uid_t uid = 0;
  WallTime placed{};  // when these GPUs were chosen
};

struct QueueView {
  const std::vector<Request>& queue;  // in the order they came
  const std::vector<GpuRoom>& rooms;
  const std::vector<Occupant>& leases;
  const Topology& topology;
  std::span<const Booked> bookings{};  // nobody gets what is promised, whenever they came
  const Keeping* keeping = nullptr;    // null: nothing has been kept so far
};

// A request's turn has come.
struct Grant {
  RequestId request;
  std::vector<LeaseGpu> gpus;
};

// The next obstacle of a waiting request: a lease that is in its way, an earlier request, or a
// booking.
struct NextFree {
  std::string gpu;             // what people call it
  std::optional<WallTime> at;  // empty: nobody knows
  std::string user;
  std::optional<LeaseId> lease;  // that has it; with `behind`: which goes first when that has ended
  LeaseKind kind = LeaseKind::kRun;
  bool ending = false;
  std::optional<RequestId> behind;
  bool expired = false;
  std::optional<RequestId> booking;  // `user` has booked it from then on, which is too soon
  bool operator==(const NextFree&) const = default;
};

// Until when a request could have as many GPUs as it wants, and what is to happen on one of them
// then.
struct FreeUntil {
  WallTime at;
  std::string gpu;  // what people call it
  RequestId whose;
  std::string user;
  bool booking = false;  // `whose` is a booking, which begins; else it waits, and goes first
  bool operator==(const FreeUntil&) const = default;
};

// A GPU on which the leases leave enough of its size for a request, but not of what can be promised
// of it.
struct Crowded {
  std::string gpu;  // what people call it
  Bytes capacity;   // for leases of this share, as the site has set it
  Bytes promised;   // to the leases there; more than the capacity, if that was lowered
  Bytes outside;    // in use without a lease, or by leases above their limits
  Bytes machine{};  // of that: of the machine's memory, by programs without a GPU
  bool operator==(const Crowded&) const = default;
};

struct Waiting {
  RequestId request;
  int position = 0;                  // from 1
  int wanted = 0;                    // GPUs
  int free = 0;                      // of them, for this request
  std::vector<GpuUuid> planned;      // where it will start, as things stand
  std::optional<WallTime> expected;  // when, at the latest, as things stand; empty: nobody knows
  std::optional<NextFree> next;
  bool keeps = true;                    // false: others may start on what is free of it
  std::optional<std::string> way_made;  // its turn has come: a filler on this GPU makes way
  std::string out_of_service;           // not empty: it needs a GPU that is, and why
  // For its reason (reason.h).
  int free_now =
      0;  // of the GPUs it wants: those that it could have now, if perhaps not for long enough
  std::optional<FreeUntil> free_until;  // free_now is as many as it wants
  std::optional<Crowded> crowded;       // the GPU of `next`
};

struct QueueDecision {
  std::vector<Grant> grants;
  std::vector<Waiting> waiting;
  // Requests that no state of this machine could fill any more (a GPU is gone), and why.
  std::vector<std::pair<RequestId, Error>> impossible;
  std::vector<LeaseId> evict;         // fillers in the way of somebody whose turn it is: they end
  std::vector<LeaseId> move_out;      // and those that need not end for that
  std::map<GpuUuid, RequestId> held;  // idle GPUs and for whom they are kept
  // The plans of waiting requests on each GPU.
  std::map<GpuUuid, std::vector<GpuTimeline::Use>> plans;
  KeepingFacts keeping;
};

// Call it again after carrying out a decision that grants or evicts: a plan may then need less.
QueueDecision decide(const QueueView& view, WallTime now);

}  // namespace gpurota::lease
