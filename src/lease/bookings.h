// Bookings: GPUs that are promised to somebody from a time on. Whether they can be promised, on
// which GPUs they begin when the time has come and who leaves for them, and what a lease may not be
// changed to because of them. Pure.
//
// A booking is a use of its GPUs that the planner knows of: a lease with a stated end is given only
// what it leaves before a booking begins. A lease without one may go on beyond that, and leaves
// when the booking is used. No lease leaves for a booking that was made, or moved to its GPUs,
// after the lease began. So a booking that was accepted begins, whoever comes later, and delays
// nobody who came before.
#pragma once

#include "core/reason.h"
#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

// The GPUs for a reservation from then on, as long as it lasts; or who is in the way then. Requests
// in the queue whose start is known go first; those without a stated end count for a day from their
// start.
struct NotBooked {
  Error
      error;  // kInvalid, kLimit: never; kNoGpu: not then, and if nothing is below, the sentence is all
  std::optional<NextFree> obstacle{};  // one of those in the way
  int fitting = 0;                     // GPUs that would do
};
tl::expected<std::vector<LeaseGpu>, NotBooked> book(const QueueView& view, const Request& request,
                                                    WallTime from, WallTime now);

// The result for a booking whose time has come.
struct Beginning {
  std::vector<LeaseGpu> gpus{};     // it begins on them now
  std::vector<LeaseId> evict{};     // else fillers that end
  std::vector<LeaseId> move_out{};  // or are moved
  // Or leases without a stated end, which leave if the booking is used; else they go on. Those in
  // `leaving` end; those in `aside` are moved to host memory for as long as the booking lasts.
  std::vector<LeaseId> leaving{};
  std::vector<LeaseId> aside{};
  std::optional<Reason> why{};  // it has to wait for something else
  bool out_of_service = false;  // which is no lease that ends
};
// `request`: as it was asked for; `booked`: what is kept for it. `view` has not this booking, and
// its queue does not count.
Beginning begin(const QueueView& view, const Request& request, const Booked& booked, WallTime now);

// The leases that end if the booking is used, as far as that is known before its time has come:
// those with a stated end before it are gone by then. `request`, `booked` and `view` as for
// begin().
std::vector<LeaseId> leaving_for(const QueueView& view, const Request& request,
                                 const Booked& booked, WallTime now);

// Whether the lease makes way when that booking is used.
bool leaves_for(const Occupant& lease, const Booked& booked);

// The first booking that a lease would be in the way of, changed so; null: none. `view` has the
// other leases only.
const Booked* in_the_way_of(const QueueView& view, const Occupant& changed, WallTime now);

}  // namespace gpurota::lease
