// One GPU during planning: its capacity, its uses and their times. The only place that answers
// whether a request fits, how much it could have, and for how long. Only for this module. Pure.
#pragma once

#include "lease/gpu_timeline.h"
#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

// A lease that may end at any moment is assumed to end this long after now; no request can start in
// its place before that.
constexpr std::chrono::milliseconds kAnyMoment{1};

// The end of the lease: in a moment, its enforced end, or kNever.
WallTime end_of(const Occupant& lease, WallTime now);

class GpuPlan {
 public:
  using Against = GpuTimeline::Against;
  using Source = GpuTimeline::Source;

  // `room` must outlive it.
  GpuPlan(const GpuRoom& room, WallTime now) : room_(&room), now_(now) {}

  const GpuRoom& room() const { return *room_; }
  const GpuTimeline& timeline() const { return timeline_; }
  void add(const GpuTimeline::Use& use) { timeline_.add(use); }
  void add(const Occupant& lease, const LeaseGpu& share);
  void add(const Booked& booked, const LeaseGpu& share);
  // Call after adding all leases: leaves room beside each swap lease for what the others cannot
  // move.
  void add_turns();

  // The share of the GPU that the request takes; a filler takes all of it.
  GpuTimeline::Share size_of(const Request& request) const;
  // The uses that the request must not disturb if it starts later. For a start now, see
  // Planner::against_now().
  static Against against(const Request& request) {
    return request.kind == LeaseKind::kFiller ? Against::kAllButPlans : Against::kAllButFillers;
  }
  // If `until` is kNever and the request has `unbooked_for`, bookings count only for that long,
  // because the lease leaves when a booking is used.
  bool fits(const Request& request, WallTime from, WallTime until, Against against) const;
  // False: the request does not fit at any time after now. Cheap.
  bool may_fit_later(const Request& request) const;
  // Whether the request would fit from now until `until` if the filler there were moved to host
  // memory.
  bool fits_beside(const Request& request, WallTime until, Bytes stays) const;
  // The most that other uses take at one time within [from, until), with bookings as in fits();
  // nullopt: somebody has the whole GPU.
  std::optional<Bytes> taken(const Request& request, WallTime from, WallTime until,
                             Against against) const;
  // As taken(), of slices alone.
  Bytes slices(const Request& request, WallTime from, WallTime until, Against against) const;
  // From when on the request could have its share forever; kNever: unknown.
  WallTime free_from(const Request& request) const;
  // Until when the request could have its share from now on; nullopt: not now.
  std::optional<WallTime> free_until(const Request& request, Against against) const;
  // The largest size with which fits() would accept this request from now until `until`; zero:
  // none.
  Bytes most(const Request& request, WallTime until, Against against) const;
  // When the first booking of the GPU begins; kNever: none is known.
  WallTime booked_from() const;

 private:
  // Whether the request may continue when a booking begins.
  static bool outlasts_bookings(const Request& request, WallTime until) {
    return request.unbooked_for && until == kNever;
  }

  const GpuRoom* room_;
  WallTime now_;
  GpuTimeline timeline_;
};

}  // namespace gpurota::lease
