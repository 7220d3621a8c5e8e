// Bookings: GPUs that are promised to somebody from a time on. Whether they can be promised, on which they begin when the time
// has come, and what a lease may not be changed to because of them. Pure.
//
// A booking is a use of its GPUs that the planner knows of: nobody is given what would still be there when it begins. So
// one that was accepted begins, whoever comes later. Its GPUs are chosen when it is made (docs/design/bookings.md says why).
#pragma once

#include "core/reason.h"
#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

// The GPUs for a reservation from then on, as long as it lasts; or who is in the way then. Everybody in the queue goes first.
struct NotBooked {
  Error
      error;  // kInvalid, kLimit: never; kNoGpu: not then, and if nothing is below, the sentence is all
  std::optional<NextFree> obstacle{};  // one of those in the way
  int fitting = 0;                     // GPUs that would do
};
tl::expected<std::vector<LeaseGpu>, NotBooked> book(const QueueView& view, const Request& request,
                                                    WallTime from, WallTime now);

// What happens to a booking whose time has come. `request`: as it was asked for; `view` has not this booking, and its queue does not count.
struct Beginning {
  std::vector<LeaseGpu> gpus{};     // it begins on them now
  std::vector<LeaseId> evict{};     // else fillers that end
  std::vector<LeaseId> move_out{};  // or are moved
  std::optional<Reason> why{};      // it has to wait for something else
  bool out_of_service = false;      // which is no lease that ends
};
Beginning begin(const QueueView& view, const Request& request, const std::vector<GpuUuid>& kept,
                WallTime now);

// The first booking that a lease would be in the way of, changed so; null: none. `view` has the other leases only.
const Booked* in_the_way_of(const QueueView& view, const Occupant& changed, WallTime now);

}  // namespace gpurota::lease
