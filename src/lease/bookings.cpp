#include "lease/bookings.h"

#include "lease/planner.h"
#include "lease/reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace gpurota::lease {
namespace {

// A queued request without a stated end is assumed to last this long when GPUs are booked.
constexpr std::chrono::hours kAssumedLength{24};

const GpuRoom* find_room(const std::vector<GpuRoom>& rooms, const GpuUuid& uuid) {
  const auto it = std::find_if(rooms.begin(), rooms.end(),
                               [&](const GpuRoom& room) { return room.info.uuid == uuid; });
  return it == rooms.end() ? nullptr : &*it;
}

// The result for the request beside the leases and bookings, if no other request waited.
Beginning try_now(const QueueView& view, const Request& request, WallTime now) {
  Planner planner(view, now);
  planner.plan(request, 1);
  QueueDecision decision = planner.take();
  Beginning beginning;
  if (!decision.grants.empty()) {
    beginning.gpus = std::move(decision.grants.front().gpus);
  } else if (!decision.impossible.empty()) {
    beginning.why = impossible_reason(decision.impossible.front().second);
  } else {
    const Waiting& waiting = decision.waiting.front();
    beginning.evict = std::move(decision.evict);
    beginning.move_out = std::move(decision.move_out);
    if (!waiting.way_made) beginning.why = waiting_reason(waiting);
  }
  return beginning;
}

bool is_there(const Booked& booked, const GpuUuid& gpu) {
  return std::any_of(booked.gpus.begin(), booked.gpus.end(),
                     [&](const LeaseGpu& share) { return share.uuid == gpu; });
}

// How leases leave for a booking.
struct WayMade {
  std::set<LeaseId> ended;
  std::set<LeaseId> aside;  // in host memory; only leases that have `stays`
};

// The lease as it is while in host memory: it holds only `stays` of each GPU.
Occupant in_host_memory(Occupant lease) {
  for (LeaseGpu& share : lease.gpus) {
    share.swap = {};
    share.limit = lease.stays;
  }
  return lease;
}

// The machine after some of its leases have left.
struct Rest {
  Rest(const QueueView& view, const WayMade& way) : view_(view), rooms(view.rooms) {
    std::map<GpuUuid, Bytes> before, after;  // the largest swap lease on each GPU
    for (const Occupant& lease : view.leases) {
      const bool stays = !way.ended.contains(lease.id) && !way.aside.contains(lease.id);
      if (stays) leases.push_back(lease);
      if (way.aside.contains(lease.id)) leases.push_back(in_host_memory(lease));
      for (const LeaseGpu& share : lease.gpus) {
        if (!share.swap || !share.limit) continue;
        before[share.uuid] = std::max(before[share.uuid], *share.limit);
        if (stays) after[share.uuid] = std::max(after[share.uuid], *share.limit);
      }
    }
    for (GpuRoom& room : rooms) {
      room.swap_needed = room.swap_needed - (before[room.info.uuid] - after[room.info.uuid]);
    }
  }
  QueueView view() const {
    return {view_.queue, rooms, leases, view_.topology, view_.bookings, view_.keeping};
  }

  const QueueView& view_;
  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
};

// The leases on these GPUs that leave if the booking is used.
std::vector<const Occupant*> who_would_leave(const QueueView& view,
                                             const std::vector<GpuUuid>& gpus,
                                             const Booked& booked) {
  std::vector<const Occupant*> leases;
  for (const Occupant& lease : view.leases) {
    const bool here = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
      return std::find(gpus.begin(), gpus.end(), share.uuid) != gpus.end();
    });
    if (here && leaves_for(lease, booked)) leases.push_back(&lease);
  }
  return leases;
}

bool begins_after(const QueueView& view, const Request& request, const WayMade& way, WallTime now) {
  const Rest rest(view, way);
  const QueueView rest_view = rest.view();
  return !try_now(rest_view, request, now).why;
}

// The fewest leases that must leave so that the booking can begin. Younger leases leave before
// older leases. A lease is ended only if moving it to host memory is not enough. Nothing: the
// booking cannot begin even if all leave.
std::optional<WayMade> least_way(const QueueView& view, const Request& request,
                                 const Booked& booked, WallTime now) {
  auto leases = who_would_leave(view, request.placement.gpus, booked);
  WayMade way;
  for (const Occupant* lease : leases) way.ended.insert(lease->id);
  if (leases.empty() || !begins_after(view, request, way, now)) return std::nullopt;
  std::stable_sort(leases.begin(), leases.end(),
                   [](const Occupant* a, const Occupant* b) { return a->since < b->since; });
  // Keep each change that still lets the booking begin.
  const auto keep_if_it_begins = [&](const WayMade& changed) {
    if (begins_after(view, request, changed, now)) way = changed;
  };
  for (const Occupant* lease : leases) {
    if (!lease->stays) continue;
    WayMade changed = way;
    changed.ended.erase(lease->id);
    changed.aside.insert(lease->id);
    keep_if_it_begins(changed);
  }
  for (const auto made : {&WayMade::ended, &WayMade::aside}) {
    for (const Occupant* lease : leases) {
      WayMade changed = way;
      if ((changed.*made).erase(lease->id) != 0) keep_if_it_begins(changed);
    }
  }
  return way;
}

// The GPUs for a booking that named none, chosen so that the fewest leases leave: first the free
// GPUs that are kept for it, then other free GPUs, then the kept GPUs on which leases would leave.
std::vector<GpuUuid> targets(const QueueView& view, const Request& request, const Booked& booked,
                             WallTime now) {
  std::vector<GpuUuid> own_free, other_free, own_taken;
  for (const GpuRoom* const room : meant(request.placement, view.rooms)) {
    Request single = request;
    single.placement.wishes = {};
    single.placement.gpus = {room->info.uuid};
    const bool own = is_there(booked, room->info.uuid);
    if (!try_now(view, single, now).why) {
      (own ? own_free : other_free).push_back(room->info.uuid);
    } else if (own) {
      own_taken.push_back(room->info.uuid);
    }
  }
  std::vector<GpuUuid> gpus = own_free;
  gpus.insert(gpus.end(), other_free.begin(), other_free.end());
  gpus.insert(gpus.end(), own_taken.begin(), own_taken.end());
  const std::size_t wanted = wanted_gpus(request);
  if (gpus.size() > wanted) gpus.resize(wanted);
  return gpus;
}

// The plan of the GPU with the leases of `view`, and with its bookings if `bookings` is set.
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
  std::vector<Request> queue = view.queue;
  for (Request& waiting : queue) {
    waiting.lasts = waiting.lasts.value_or(kAssumedLength);
    waiting.unbooked_for.reset();
  }
  const QueueView known{queue, view.rooms, view.leases, view.topology, view.bookings, view.keeping};
  Planner planner(known, now, Planner::Plans::kKnown);
  planner.plan_queue(queue.size());
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

bool leaves_for(const Occupant& lease, const Booked& booked) {
  return lease.leaves_for_bookings && !lease.ending && lease.uid != booked.uid &&
         lease.since >= booked.placed;
}

Beginning begin(const QueueView& machine, const Request& request, const Booked& booked,
                WallTime now) {
  WayMade made;
  for (const Occupant& lease : machine.leases) {
    if (lease.moved_out && lease.kind != LeaseKind::kFiller) made.aside.insert(lease.id);
  }
  const Rest rest(machine, made);
  const QueueView view = rest.view();
  Request own = request;
  own.placement.wishes = {};
  own.placement.gpus.clear();
  for (const LeaseGpu& share : booked.gpus) own.placement.gpus.push_back(share.uuid);
  Beginning beginning = try_now(view, own, now);
  if (!beginning.why) return beginning;
  if (request.placement.gpus.empty()) {
    // The booked GPUs are not available: look for others.
    Beginning elsewhere = try_now(view, request, now);
    if (!elsewhere.why) return elsewhere;
    own.placement.gpus = targets(view, request, booked, now);
  }
  if (const auto way = least_way(view, own, booked, now)) {
    beginning.leaving.assign(way->ended.begin(), way->ended.end());
    beginning.aside.assign(way->aside.begin(), way->aside.end());
  }
  if (!beginning.leaving.empty() || !beginning.aside.empty()) beginning.why.reset();
  return beginning;
}

std::vector<LeaseId> leaving_for(const QueueView& view, const Request& request,
                                 const Booked& booked, WallTime now) {
  const WallTime then = std::max(booked.from, now);
  WayMade gone;
  for (const Occupant& lease : view.leases) {
    if (lease.ending || (lease.ends && *lease.ends <= then)) gone.ended.insert(lease.id);
  }
  std::vector<Booked> others;
  for (const Booked& other : view.bookings) {
    if (other.until > then) others.push_back(other);
  }
  const Rest rest(view, gone);
  const QueueView later{view.queue, rest.rooms, rest.leases, view.topology, others, view.keeping};
  return begin(later, request, booked, then).leaving;
}

const Booked* in_the_way_of(const QueueView& view, const Occupant& changed, WallTime now,
                            int most_compute) {
  const WallTime end = end_of(changed, now);
  const Booked* first = nullptr;
  for (const LeaseGpu& share : changed.gpus) {
    const GpuRoom* const room = find_room(view.rooms, share.uuid);
    if (!room) continue;
    const GpuTimeline::Share wanted{share.limit, share.swap, share.compute.least, changed.uid,
                                    most_compute};
    const Bytes capacity = share.swap ? room->swap_capacity : room->capacity;
    const auto fits = [&](bool bookings) {
      return plan_of(*room, view, bookings, now)
          .timeline()
          .fits(wanted, now, end, GpuTimeline::Against::kAllButFillers, capacity);
    };
    // A lease that does not fit even without bookings is not in their way.
    if (fits(true) || !fits(false)) continue;
    for (const Booked& booked : view.bookings) {
      if (!is_there(booked, share.uuid) || booked.from >= end) continue;
      if (leaves_for(changed, booked)) continue;
      if (!first || booked.from < first->from) first = &booked;
    }
  }
  return first;
}

}  // namespace gpurota::lease
