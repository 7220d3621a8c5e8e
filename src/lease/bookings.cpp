#include "lease/bookings.h"

#include "lease/planner.h"
#include "lease/reason.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::lease {
namespace {

const GpuRoom* find_room(const std::vector<GpuRoom>& rooms, const GpuUuid& uuid) {
  const auto it = std::find_if(rooms.begin(), rooms.end(),
                               [&](const GpuRoom& room) { return room.info.uuid == uuid; });
  return it == rooms.end() ? nullptr : &*it;
}

// Alone on the machine but for leases and bookings.
Beginning try_now(const QueueView& view, const Request& request, WallTime now) {
  Planner planner(view, now);
  planner.plan(request, 1);
  QueueDecision decision = planner.take();
  Beginning beginning;
  if (!decision.grants.empty()) {
    beginning.gpus = std::move(decision.grants.front().gpus);
  } else if (!decision.impossible.empty()) {
    beginning.why = impossible_reason(decision.impossible.front().second);
    beginning.out_of_service = true;
  } else {
    const Waiting& waiting = decision.waiting.front();
    beginning.evict = std::move(decision.evict);
    beginning.move_out = std::move(decision.move_out);
    beginning.out_of_service = !waiting.out_of_service.empty();
    if (!waiting.way_made) beginning.why = waiting_reason(waiting);
  }
  return beginning;
}

bool is_there(const Booked& booked, const GpuUuid& gpu) {
  return std::any_of(booked.gpus.begin(), booked.gpus.end(),
                     [&](const LeaseGpu& share) { return share.uuid == gpu; });
}

// As the GPU is used by the others.
GpuPlan plan_of(const GpuRoom& room, const QueueView& view, bool bookings, WallTime now) {
  GpuPlan plan(room, now);
  for (const Occupant& lease : view.leases) {
    for (const LeaseGpu& share : lease.gpus) {
      if (share.uuid == room.info.uuid) plan.add(lease, share);
    }
  }
  if (!bookings) return plan;
  for (const Booked& booked : view.bookings) {
    for (const LeaseGpu& share : booked.gpus) {
      if (share.uuid == room.info.uuid) plan.add(booked, share);
    }
  }
  return plan;
}

}  // namespace

tl::expected<std::vector<LeaseGpu>, NotBooked> book(const QueueView& view, const Request& request,
                                                    WallTime from, WallTime now) {
  const auto refuse = [](NotBooked why) { return tl::unexpected<NotBooked>(std::move(why)); };
  if (auto never = impossible(request.placement, view.rooms)) return refuse({never->error});
  Planner planner(view, now);
  int position = 0;
  for (const Request& waiting : view.queue) {
    if (waiting.kind != LeaseKind::kFiller && position < kMaxPlanned) {
      planner.plan(waiting, ++position);
    }
  }
  const Planner::Later later = planner.later(request, from);
  if (!later.out_of_service.empty()) return refuse({{Code::kNoGpu, 0, later.out_of_service}});
  if (later.gpus.empty()) {
    return refuse({{Code::kNoGpu, 0, {}}, later.obstacle, static_cast<int>(later.fitting)});
  }
  std::vector<LeaseGpu> shares;
  for (const GpuUuid& gpu : later.gpus) {
    shares.push_back(make_share(request.placement, *find_room(view.rooms, gpu), Bytes()));
  }
  return shares;
}

Beginning begin(const QueueView& view, const Request& request, const std::vector<GpuUuid>& kept,
                WallTime now) {
  Request own = request;
  own.placement.gpus = kept;
  own.placement.wishes = {};
  Beginning beginning = try_now(view, own, now);
  if (!beginning.why || !request.placement.gpus.empty()) return beginning;
  // Its own cannot be had: others that can do as well.
  Beginning elsewhere = try_now(view, request, now);
  return elsewhere.why ? beginning : elsewhere;
}

const Booked* in_the_way_of(const QueueView& view, const Occupant& changed, WallTime now) {
  const WallTime end = end_of(changed, now);
  const Booked* first = nullptr;
  for (const LeaseGpu& share : changed.gpus) {
    const GpuRoom* const room = find_room(view.rooms, share.uuid);
    if (!room) continue;
    const GpuTimeline::Share wanted{share.limit, share.swap};
    const Bytes capacity = share.swap ? room->swap_capacity : room->capacity;
    const auto fits = [&](bool bookings) {
      return plan_of(*room, view, bookings, now)
          .timeline()
          .fits(wanted, now, end, GpuTimeline::Against::kAllButFillers, capacity);
    };
    // What does not fit anyway is not the fault of a booking.
    if (fits(true) || !fits(false)) continue;
    for (const Booked& booked : view.bookings) {
      if (!is_there(booked, share.uuid) || booked.from >= end) continue;
      if (!first || booked.from < first->from) first = &booked;
    }
  }
  return first;
}

}  // namespace gpurota::lease
