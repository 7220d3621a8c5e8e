#include "lease/gpu_plan.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

// A filler takes a whole GPU. While it is in host memory, it takes only what stays on the GPU.
GpuTimeline::Share share_of_filler(const Occupant& filler) {
  if (filler.moved_out && filler.stays && !filler.ending) return {filler.stays, false};
  return {};
}

}  // namespace

WallTime end_of(const Occupant& lease, WallTime now) {
  if (lease.ending) return now + kAnyMoment;
  return lease.ends ? std::max(*lease.ends, now + kAnyMoment) : kNever;
}

void GpuPlan::add(const Occupant& lease, const LeaseGpu& share) {
  const WallTime end = end_of(lease, now_);
  if (lease.kind == LeaseKind::kFiller) {
    timeline_.add({now_, end, share_of_filler(lease), Source::kFiller});
    return;
  }
  timeline_.add(
      {now_, end, {share.limit, share.swap, share.compute.least, lease.uid}, Source::kLease});
}

// A booking whose time has come has its GPUs as if it had begun.
void GpuPlan::add(const Booked& booked, const LeaseGpu& share) {
  const WallTime until = std::max(booked.until, now_ + kAnyMoment);
  timeline_.add({std::max(booked.from, now_),
                 until,
                 {share.limit, share.swap, share.compute.least, booked.uid},
                 Source::kBooking});
}

void GpuPlan::add_turns() {
  Bytes largest;
  std::vector<GpuTimeline::Use> turns;
  for (const GpuTimeline::Use& use : timeline_.uses()) {
    if (!use.share.swap || !use.share.bytes || use.source != Source::kLease) continue;
    largest = std::max(largest, *use.share.bytes);
    turns.push_back(use);
  }
  // `beside`: the memory that swap leases, other than the largest, cannot move. The GPU must have
  // room for this memory beside the largest swap lease, and beside the next largest once the
  // largest has ended. Each swap lease is therefore counted with this memory added.
  const Bytes beside = room_->swap_needed - largest;
  if (beside.is_zero()) return;
  for (GpuTimeline::Use& use : turns) {
    *use.share.bytes += beside;
    timeline_.add(use);
  }
}

GpuTimeline::Share GpuPlan::size_of(const Request& request) const {
  if (request.placement.exclusive() || request.kind == LeaseKind::kFiller) return {};
  return {least_of(request.placement, *room_), request.placement.swap,
          request.placement.compute.least, request.uid, request.most_compute};
}

bool GpuPlan::fits(const Request& request, WallTime from, WallTime until, Against against) const {
  const Bytes capacity = capacity_for(request.placement, *room_);
  const GpuTimeline::Share share = size_of(request);
  // Whether the request fits now beside the memory that the swap leases there cannot move. For a
  // later time this memory is unknown, and is ignored.
  const bool beside = !share.swap || from > now_ ||
                      timeline_.slices(from, from + kAnyMoment, against) + *share.bytes <=
                          capacity - room_->swap_wired;
  if (!beside) return false;
  if (!outlasts_bookings(request, until)) {
    return timeline_.fits(share, from, until, against, capacity);
  }
  return timeline_.fits(share, from, kNever, GpuTimeline::without_bookings(against), capacity) &&
         timeline_.fits(share, from, from + *request.unbooked_for, against, capacity);
}

bool GpuPlan::may_fit_later(const Request& request) const {
  return timeline_.may_fit(size_of(request), now_, !request.lasts, against(request),
                           capacity_for(request.placement, *room_));
}

bool GpuPlan::fits_beside(const Request& request, WallTime until, Bytes stays) const {
  GpuPlan trial(*room_, now_);
  for (GpuTimeline::Use use : timeline_.uses()) {
    if (use.source == Source::kFiller) use.share = {stays, false};
    trial.timeline_.add(use);
  }
  return trial.fits(request, now_, until, Against::kAllButPlans);
}

std::optional<Bytes> GpuPlan::taken(const Request& request, WallTime from, WallTime until,
                                    Against against) const {
  if (!outlasts_bookings(request, until)) return timeline_.taken(from, until, against);
  const auto ever = timeline_.taken(from, kNever, GpuTimeline::without_bookings(against));
  const auto at_first = timeline_.taken(from, from + *request.unbooked_for, against);
  return ever && at_first ? std::optional(std::max(*ever, *at_first)) : std::nullopt;
}

Bytes GpuPlan::slices(const Request& request, WallTime from, WallTime until,
                      Against against) const {
  if (!outlasts_bookings(request, until)) return timeline_.slices(from, until, against);
  return std::max(timeline_.slices(from, kNever, GpuTimeline::without_bookings(against)),
                  timeline_.slices(from, from + *request.unbooked_for, against));
}

WallTime GpuPlan::free_from(const Request& request) const {
  const Against others = against(request);
  if (fits(request, now_, kNever, others)) return now_;
  WallTime best = kNever;
  for (const GpuTimeline::Use& use : timeline_.uses()) {
    if (use.until <= now_ || use.until >= best) continue;
    if (fits(request, use.until, kNever, others)) best = use.until;
  }
  return best;
}

std::optional<WallTime> GpuPlan::free_until(const Request& request, Against against) const {
  if (!fits(request, now_, now_ + kAnyMoment, against)) return std::nullopt;
  // The request can stop fitting only where another use begins.
  WallTime until = kNever;
  for (const GpuTimeline::Use& use : timeline_.uses()) {
    if (use.from <= now_ || use.from >= until) continue;
    if (!fits(request, now_, use.from + kAnyMoment, against)) until = use.from;
  }
  return until;
}

Bytes GpuPlan::most(const Request& request, WallTime until, Against against) const {
  const Bytes capacity = capacity_for(request.placement, *room_);
  const auto taken = this->taken(request, now_, until, against);
  if (!taken || *taken > capacity) return {};
  if (!request.placement.swap) return capacity - *taken;
  const Bytes now = timeline_.slices(now_, now_ + kAnyMoment, against);
  return std::min(capacity - room_->swap_wired - now,
                  capacity - slices(request, now_, until, against));
}

WallTime GpuPlan::booked_from() const {
  WallTime first = kNever;
  for (const GpuTimeline::Use& use : timeline_.uses()) {
    if (use.source == Source::kBooking) first = std::min(first, use.from);
  }
  return first;
}

}  // namespace gpurota::lease
