// The queue's decision: which requests get GPUs now, and which wait for which GPUs. Pure: the same
// queue, leases and time give the same decision. The daemon calls it after every change and carries
// out the decision.
//
// First come, first served; all or nothing. Requests are planned in order: each gets the earliest
// time at which it fits beside the current leases and the plans of those before it. A request that
// fits now starts now. For a request that waits, the GPUs of its plan are kept. When such a GPU is
// free, it is held for the request; a later request may use the GPU only if an enforced end frees
// it before the planned start. Keeping is limited in time: keeping.h. If the start of a request is
// unknown, its plan leaves the GPUs to fillers only.
//
// No plan uses a GPU that is broken or draining, and no plan for whole GPUs uses a GPU in
// unreserved use. A request that needs such a GPU waits, but holds nothing meanwhile. Fillers leave
// when another request needs their GPU, so plans of others ignore them. Fillers themselves take
// idle GPUs, held or not. A filler has its GPU to itself, whatever its limit is. If a filler can be
// moved to host memory, it is moved for a request that fits beside what stays on the GPU. If the
// request does not fit there, or wants the whole GPU, the filler ends.
//
// A booking is a promise. A request with a stated end starts if it ends before the booking begins.
// A request without a stated end starts if nothing is booked there for `unbooked_for`, and its
// lease leaves when a booking is used (bookings.h).
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

// At most this many requests get plans; owners take turns. All other requests keep their order, and
// start when they fit beside the plans.
constexpr int kMaxPlanned = 128;

struct Request {
  RequestId id;
  LeaseKind kind = LeaseKind::kRun;
  std::string user;  // for display: "alice"
  PlacementRequest placement;
  std::optional<std::chrono::milliseconds> lasts;  // enforced from its start on; empty: unknown
  // Set: the lease leaves when a booking is used, so it starts where nothing is booked for this
  // long. Empty: the lease starts where nothing is booked for as long as it lasts.
  std::optional<std::chrono::milliseconds> unbooked_for{};
  uid_t owner = 0;                     // the planned places are given to each owner in turn
  std::chrono::milliseconds waited{};  // since it arrived
  uid_t uid = 0;
  // The most percent of a GPU's compute time that all leases of its user there may be promised.
  int most_compute = kMostComputeShare;
};

// A lease, as the queue needs it.
struct Occupant {
  LeaseId id;
  LeaseKind kind = LeaseKind::kRun;
  std::string user;
  std::vector<LeaseGpu> gpus;
  std::optional<WallTime> ends;  // enforced; empty: unknown
  bool ending = false;           // may end at any moment
  bool expired = false;          // its time is over, and the site lets it continue
  // For a filler or a swap lease that can be moved to host memory: the most that stays on one of
  // its GPUs. Empty: the lease can only end.
  std::optional<Bytes> stays{};
  bool moved_out = false;  // its memory is in host memory
  uid_t uid = 0;           // its owner
  WallTime since{};
  bool leaves_for_bookings = false;  // for others' bookings placed no later than `since`
};

// GPUs that are promised to a user, beginning at a later time (bookings.h).
struct Booked {
  RequestId id;
  std::string user;
  std::vector<LeaseGpu> gpus;
  WallTime from;
  WallTime until;  // kNever: the site lets reservations continue after their time
  uid_t uid = 0;
  WallTime placed{};  // when these GPUs were chosen
};

struct QueueView {
  const std::vector<Request>& queue;  // in the order of arrival
  const std::vector<GpuRoom>& rooms;
  const std::vector<Occupant>& leases;
  const Topology& topology;
  std::span<const Booked> bookings{};  // promised to others; bind earlier requests, too
  const Keeping* keeping = nullptr;    // null: nothing has been kept so far
};

// A request that starts now.
struct Grant {
  RequestId request;
  std::vector<LeaseGpu> gpus;
};

// The next obstacle of a waiting request: a lease, an earlier request, or a booking.
struct NextFree {
  std::string gpu;             // its name for people
  std::optional<WallTime> at;  // empty: unknown
  std::string user;
  std::optional<LeaseId> lease;  // the lease in the way; `behind` gets the GPU after it
  LeaseKind kind = LeaseKind::kRun;
  bool ending = false;
  std::optional<RequestId> behind;
  bool expired = false;
  std::optional<RequestId> booking;  // the last booking in the way; `user` made it, `at` is its end
  bool operator==(const NextFree&) const = default;
};

// Until when a request could have as many GPUs as it wants, and what happens on one of them then.
struct FreeUntil {
  WallTime at;
  std::string gpu;  // its name for people
  RequestId whose;
  std::string user;
  bool booking = false;  // `whose` is a booking that begins; else a request that comes first
  bool operator==(const FreeUntil&) const = default;
};

// A GPU on which a request does not fit because more is promised to leases than the capacity, or
// because of use beyond the promises.
struct Crowded {
  std::string gpu;  // its name for people
  Bytes capacity;   // for leases of this kind of share, as the site sets it
  Bytes promised;   // to leases; may exceed a capacity that was lowered
  Bytes outside;    // in use without a lease, or by leases above their limits
  Bytes machine{};  // part of `outside`: the machine's memory, used by programs without a GPU
  bool operator==(const Crowded&) const = default;
};

struct Waiting {
  RequestId request;
  int position = 0;                  // from 1
  int wanted = 0;                    // GPUs
  int free = 0;                      // of `wanted`, free for this request
  std::vector<GpuUuid> planned;      // where it will start, if nothing changes
  std::optional<WallTime> expected;  // when, at the latest, if nothing changes; empty: unknown
  std::optional<NextFree> next;
  bool keeps = true;                    // false: others may start on its free GPUs
  std::optional<std::string> way_made;  // its turn has come, and a filler leaves this GPU
  std::string out_of_service;           // not empty: why a GPU that it needs is out of service
  // For the reason of the wait (reason.h).
  int free_now = 0;  // how many of the GPUs it could have now, perhaps not for long enough
  std::optional<FreeUntil> free_until;  // set if free_now is as many as it wants
  std::optional<Crowded> crowded;       // the GPU of `next`
};

struct QueueDecision {
  std::vector<Grant> grants;
  std::vector<Waiting> waiting;
  // Requests that no state of this machine could fill any more (a GPU is gone), and the reasons.
  std::vector<std::pair<RequestId, Error>> impossible;
  std::vector<LeaseId> evict;         // fillers that must end for a request whose turn it is
  std::vector<LeaseId> move_out;      // fillers that need only be moved
  std::map<GpuUuid, RequestId> held;  // idle GPUs, and for which request they are kept
  // The plans of waiting requests on each GPU.
  std::map<GpuUuid, std::vector<GpuTimeline::Use>> plans;
  KeepingFacts keeping;
};

// Call again after carrying out a decision that grants or evicts: a plan may then need less.
QueueDecision decide(const QueueView& view, WallTime now);

}  // namespace gpurota::lease
