// Bookings: GPUs that are promised to a user from a given time on. Decides whether GPUs can be
// promised, and which changes of a lease are refused because of a booking. When the time of a
// booking has come, decides on which GPUs the booking begins and which leases leave for it. Pure.
//
// To the planner, a booking is a future use of its GPUs. A lease with a stated end gets only what
// the booking does not need. A lease without a stated end may still be there when the booking
// begins, and leaves when the booking is used. No lease leaves for a booking that was made, or
// moved to its GPUs, after the lease began. So an accepted booking begins despite anything that
// comes later, and delays no earlier user.
#pragma once

#include "core/reason.h"
#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

// Why a booking is refused, and what is in its way.
struct NotBooked {
  // kInvalid, kLimit: the GPUs can never be booked; kNoGpu: not at that time. If the members below
  // are empty, the message says everything.
  Error error;
  std::optional<NextFree> obstacle{};  // one obstacle of several
  int fitting = 0;                     // GPUs that would be suitable
};
// Returns the GPUs for a reservation that begins at `from`, for as long as it lasts, or what is in
// the way then. Requests in the queue whose start is known take precedence. A queued request
// without a stated end counts for a day from its start.
tl::expected<std::vector<LeaseGpu>, NotBooked> book(const QueueView& view, const Request& request,
                                                    WallTime from, WallTime now);

// The result for a booking whose time has come.
struct Beginning {
  std::vector<LeaseGpu> gpus{};     // the GPUs on which it begins now
  std::vector<LeaseId> evict{};     // else fillers that must end first
  std::vector<LeaseId> move_out{};  // or must be moved to host memory first
  // Or leases without a stated end must leave, and they do so only when the booking is used: the
  // leases in `leaving` end, and the leases in `aside` are moved to host memory for as long as the
  // booking lasts.
  std::vector<LeaseId> leaving{};
  std::vector<LeaseId> aside{};
  std::optional<Reason> why{};  // why it has to wait for something else
};
// `request`: the original request; `booked`: the GPUs that are kept for it. `view` must not have
// this booking, and its queue is ignored.
Beginning begin(const QueueView& view, const Request& request, const Booked& booked, WallTime now);

// The leases that would end if the booking were used, as predicted before its time. Leases with a
// stated end before then are not among them. `request`, `booked` and `view` as for begin().
std::vector<LeaseId> leaving_for(const QueueView& view, const Request& request,
                                 const Booked& booked, WallTime now);

// Whether the lease leaves when that booking is used.
bool leaves_for(const Occupant& lease, const Booked& booked);

// The first booking that the changed lease would be in the way of; null: none. `view` has only the
// other leases.
// `most_compute`: as in Request.
const Booked* in_the_way_of(const QueueView& view, const Occupant& changed, WallTime now,
                            int most_compute = kMostComputeShare);

}  // namespace gpurota::lease
