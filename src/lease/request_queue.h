// Who waits for which GPUs, and who gets them now. Pure: the same queue, leases and time give the
// same decision. The daemon calls it after every change and carries out what it says.
//
// First come, first served; all or nothing. The requests are planned in their order: each gets the
// earliest time at which it fits beside the leases there are and the plans of those before it. One
// that fits now starts now. For one that does not, the GPUs it will start on are kept: once free they
// are held for it, and somebody later may only use them if an enforced end gives them back before the
// planned start (a start that nobody knows lets only fillers in). So nobody who comes later delays
// anybody, and what stands idle is either held for somebody or of no use to anybody who waits.
//
// A GPU that is broken, draining or in unreserved use is not planned with: a request that cannot do
// without it waits, but holds nothing meanwhile. Fillers go when somebody needs their GPU, so for the
// others they are not there; they themselves take what nobody has, held or not. A filler
// has its GPU to itself, whatever its limit is: nobody shares one with it. One that can be moved out is, for
// those who fit beside what of it stays; for others, and for whoever wants the whole GPU, it ends.
#pragma once

#include "core/lease.h"
#include "core/topology.h"
#include "lease/gpu_timeline.h"
#include "lease/placement.h"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpurota::lease {

// Requests beyond so many are not planned, only kept in order: they wait until they move up.
constexpr int kMaxPlanned = 128;

struct Request {
  RequestId id;
  LeaseKind kind = LeaseKind::kRun;
  std::string user;  // as shown: "alice"
  PlacementRequest placement;
  std::optional<std::chrono::milliseconds> lasts;  // enforced from its start on; empty: unknown
  // What is free, until it can have all that it needs; false: others may have that.
  bool keeps = true;
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
  // Of a filler that can be moved out: what of it stays on its GPU. Empty: it can only end.
  std::optional<Bytes> stays{};
  bool moved_out = false;  // it is out
};

// GPUs that are promised to somebody from a time on (bookings.h).
struct Booked {
  RequestId id;
  std::string user;
  std::vector<LeaseGpu> gpus;
  WallTime from;
  WallTime until;  // kNever: the site lets reservations go on when they are over
};

struct QueueView {
  const std::vector<Request>& queue;  // in the order they came
  const std::vector<GpuRoom>& rooms;
  const std::vector<Occupant>& leases;
  const Topology& topology;
  std::span<const Booked> bookings{};  // nobody gets what is promised, whenever they came
};

// A request's turn has come.
struct Grant {
  RequestId request;
  std::vector<LeaseGpu> gpus;
};

// What a waiting request waits for next: a lease that is in its way, an earlier request, or a booking.
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
  bool keeps = true;                    // as its request
  std::optional<std::string> way_made;  // its turn has come: a filler on this GPU makes way
  std::string out_of_service;           // not empty: it needs a GPU that is, and why
  // Of the last in the queue, GPUs that are kept for others: for whom, "R1 of alice".
  std::map<GpuUuid, std::string> kept;
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
  // What those who wait have planned on each.
  std::map<GpuUuid, std::vector<GpuTimeline::Use>> plans;
};

// Call it again after carrying out a decision that grants or evicts: a plan may then need less.
QueueDecision decide(const QueueView& view, WallTime now);

}  // namespace gpurota::lease
