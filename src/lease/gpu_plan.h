// One GPU while the queue is planned: what it has, what is taken of it and until when, and with
// that the one answer to whether a request fits, how much it could have, and for how long. Of this
// module only. Pure.
#pragma once

#include "lease/gpu_timeline.h"
#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

// A lease that goes any moment has an end that is not now: nobody can start before it has gone.
constexpr std::chrono::milliseconds kAnyMoment{1};

// When it goes: in a moment, at its enforced end, or kNever.
WallTime end_of(const Occupant& lease, WallTime now);

class GpuPlan {
 public:
  using Against = GpuTimeline::Against;
  using Source = GpuTimeline::Source;

  // `room` outlives it.
  GpuPlan(const GpuRoom& room, WallTime now) : room_(&room), now_(now) {}

  const GpuRoom& room() const { return *room_; }
  const GpuTimeline& timeline() const { return timeline_; }
  void add(const GpuTimeline::Use& use) { timeline_.add(use); }
  void add(const Occupant& lease, const LeaseGpu& share);
  void add(const Booked& booked, const LeaseGpu& share);
  // After all leases: what the swap leases cannot move is beside the largest of them.
  void add_turns();

  // The share of the GPU that the request takes; a filler has it to itself.
  GpuTimeline::Share size_of(const Request& request) const;
  // The uses that a request that starts later has to leave alone; Planner knows those of one that
  // starts now.
  static Against against(const Request& request) {
    return request.kind == LeaseKind::kFiller ? Against::kAllButPlans : Against::kAllButFillers;
  }
  // `until` is kNever: as long as it lasts, which for a request with `unbooked_for` may be beyond
  // the beginning of a booking.
  bool fits(const Request& request, WallTime from, WallTime until, Against against) const;
  // False: it does not fit at any time after now. Cheap.
  bool may_fit_later(const Request& request) const;
  // The same, now, if the filler that is there were moved out.
  bool fits_beside(const Request& request, WallTime until, Bytes stays) const;
  // The most that is taken within [from, until) of what the request could have; nothing: all of it.
  std::optional<Bytes> taken(const Request& request, WallTime from, WallTime until,
                             Against against) const;
  // The same of slices only.
  Bytes slices(const Request& request, WallTime from, WallTime until, Against against) const;
  // From when on the request can have it for ever; kNever: nobody knows.
  WallTime free_from(const Request& request) const;
  // Until when the request could have it from now on; nothing: not now.
  std::optional<WallTime> free_until(const Request& request, Against against) const;
  // The most memory that fits() accepts of such a request with a size from now until then; zero:
  // none.
  Bytes most(const Request& request, WallTime until, Against against) const;
  // When the first booking of it begins; kNever: none is known.
  WallTime booked_from() const;

 private:
  // Whether the request may go on when a booking begins.
  static bool outlasts_bookings(const Request& request, WallTime until) {
    return request.unbooked_for && until == kNever;
  }

  const GpuRoom* room_;
  WallTime now_;
  GpuTimeline timeline_;
};

}  // namespace gpurota::lease
