#include "lease/planner.h"

#include "base/text.h"
#include "lease/gpu_choice.h"
#include "lease/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::lease {

std::size_t wanted_gpus(const Request& request) {
  return request.placement.gpus.empty() ? static_cast<std::size_t>(request.placement.count)
                                        : request.placement.gpus.size();
}

Planner::Planner(const QueueView& view, WallTime now) : view_(view), now_(now) {
  for (const GpuRoom& room : view.rooms) gpus_.emplace_back(room, now);
  for (const Occupant& lease : view.leases) {
    for (const LeaseGpu& share : lease.gpus) {
      if (GpuPlan* const gpu = find(share.uuid)) gpu->add(lease, share);
    }
  }
  for (GpuPlan& gpu : gpus_) gpu.add_turns();
  for (const Booked& booked : view.bookings) {
    for (const LeaseGpu& share : booked.gpus) {
      if (GpuPlan* const gpu = find(share.uuid)) gpu->add(booked, share);
    }
  }
}

GpuPlan* Planner::find(const GpuUuid& uuid) {
  const auto it = std::find_if(gpus_.begin(), gpus_.end(),
                               [&](const GpuPlan& gpu) { return gpu.room().info.uuid == uuid; });
  return it == gpus_.end() ? nullptr : &*it;
}

Planner::Gpus Planner::usable(const Request& request, Waiting& waiting) {
  Gpus gpus;
  std::string why;
  const std::vector<const GpuRoom*> rooms = meant(request.placement, view_.rooms);
  PlacementRequest asked = request.placement;
  if (request.kind == LeaseKind::kFiller) {
    asked.memory.reset();
    asked.swap = false;
  }
  for (GpuPlan& gpu : gpus_) {
    const GpuRoom& room = gpu.room();
    if (!leasable(room) || std::find(rooms.begin(), rooms.end(), &room) == rooms.end()) continue;
    const std::string out = out_of_service(asked, room);
    const auto size = gpu.size_of(request).bytes;
    if (!out.empty() || (size && *size > capacity_for(request.placement, room))) {
      why += (why.empty() ? "GPU " : "; GPU ") + name_of(room, view_.rooms) + " " +
             (out.empty() ? "has too little left beside what runs there without a lease" : out);
    } else {
      gpus.push_back(&gpu);
    }
  }
  if (gpus.size() < wanted_gpus(request)) {
    waiting.out_of_service = why.empty() ? "a GPU is missing" : why;
  }
  return gpus;
}

std::vector<WallTime> Planner::possible_starts(const Request& request, const Gpus& gpus) const {
  std::set<WallTime> times = {now_};
  // A filler has no right to a GPU before it has one: now or not at all.
  if (request.kind == LeaseKind::kFiller) return {now_};
  for (const GpuPlan* gpu : gpus) {
    for (const GpuTimeline::Use& use : gpu->timeline().uses()) {
      if (use.until != kNever && use.source != Source::kFiller) times.insert(use.until);
    }
  }
  return {times.begin(), times.end()};
}

Planner::Gpus Planner::choose(const Request& request, const Gpus& fitting, WallTime from) {
  const auto by_index = [](const GpuPlan* a, const GpuPlan* b) {
    return a->room().info.index < b->room().info.index;
  };
  Gpus chosen = fitting;
  if (from > now_) {
    // Those that are free first, so that it starts early if others end early.
    std::stable_sort(chosen.begin(), chosen.end(), [&](const GpuPlan* a, const GpuPlan* b) {
      return a->free_from(request) < b->free_from(request);
    });
    chosen.resize(wanted_gpus(request));
    std::sort(chosen.begin(), chosen.end(), by_index);
    return chosen;
  }
  std::vector<Candidate> candidates;
  for (const bool clear : {true, false}) {  // with fillers on them only if there are too few others
    for (const GpuPlan* gpu : fitting) {
      const WallTime end = until(request, from);
      if (gpu->fits(request, from, end, Against::kAllButPlans) != clear) continue;
      const auto taken = request.placement.swap
                             ? gpu->timeline().slices(from, end, GpuPlan::against(request))
                             : gpu->timeline().taken(from, end, GpuPlan::against(request));
      const Bytes capacity = capacity_for(request.placement, gpu->room());
      candidates.push_back({&gpu->room(), capacity - taken.value_or(capacity)});
    }
    if (candidates.size() >= wanted_gpus(request)) break;
  }
  chosen.clear();
  for (const GpuRoom* room :
       choose_gpus(request.placement, candidates, view_.topology, wanted_gpus(request))) {
    for (GpuPlan* gpu : fitting) {
      if (&gpu->room() == room) chosen.push_back(gpu);
    }
  }
  return chosen;
}

bool Planner::plan_at(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting) {
  Gpus fitting;
  for (GpuPlan* gpu : gpus) {
    if (gpu->fits(request, from, until(request, from), GpuPlan::against(request)))
      fitting.push_back(gpu);
  }
  if (fitting.size() < wanted_gpus(request)) return false;
  const Gpus chosen = choose(request, fitting, from);
  if (from == now_) {
    start(request, chosen, waiting);
  } else {
    waiting.expected = from;
    keep(request, chosen, from, waiting);
  }
  return true;
}

// Nobody knows when. Kept are the GPUs that are likely to be free first: those that are, those whose
// time is known, then those with the fewest on them. As nobody new gets onto what is kept, that sum
// never grows, and the request's turn comes when those on it have ended.
void Planner::plan_for_some_day(const Request& request, const Gpus& gpus, Waiting& waiting) {
  const auto key = [&](const GpuPlan* gpu) {
    const auto endless = std::count_if(
        gpu->timeline().uses().begin(), gpu->timeline().uses().end(),
        [&](const auto& use) { return use.until == kNever && use.source != Source::kFiller; });
    return std::pair(gpu->free_from(request), endless);
  };
  Gpus chosen = gpus;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const GpuPlan* a, const GpuPlan* b) { return key(a) < key(b); });
  chosen.resize(wanted_gpus(request));
  keep(request, chosen, now_, waiting);
}

void Planner::start(const Request& request, const Gpus& gpus, Waiting& waiting) {
  const WallTime end = until(request, now_);
  bool clear = true;
  if (request.kind != LeaseKind::kFiller) {
    for (const GpuPlan* gpu : gpus) {
      if (gpu->fits(request, now_, end, Against::kAllButPlans)) continue;
      clear = false;
      waiting.way_made = name_of(gpu->room(), view_.rooms);
      make_way(request, *gpu);
    }
  }
  if (!clear) {
    waiting.expected = now_ + kAnyMoment;
    waiting.free_now = waiting.wanted;
    keep(request, gpus, now_, waiting, Source::kDue);
    return;
  }
  Grant grant{request.id, {}};
  const auto source = request.kind == LeaseKind::kFiller ? Source::kFiller : Source::kLease;
  // Leases are there now; what is booked comes later, and is left alone as well.
  const auto share_on = [&](const GpuPlan& gpu) {
    return make_share(request.placement, gpu.room(),
                      gpu.timeline().slices(now_, end, Against::kPromised));
  };
  // Named GPUs keep the order they were named in.
  for (const GpuUuid& uuid : request.placement.gpus) {
    if (const GpuPlan* gpu = find(uuid)) {
      grant.gpus.push_back(share_on(*gpu));
    }
  }
  if (grant.gpus.empty()) {
    for (const GpuPlan* gpu : gpus) {
      grant.gpus.push_back(share_on(*gpu));
    }
  }
  for (const LeaseGpu& share : grant.gpus) {
    GpuPlan* gpu = find(share.uuid);
    const auto limit = source == Source::kFiller ? std::optional<Bytes>() : share.limit;
    gpu->add({now_, end, {limit, share.swap}, source});
  }
  decision_.grants.push_back(std::move(grant));
}

// The filler in the way ends, unless it is enough that it is moved out.
void Planner::make_way(const Request& request, const GpuPlan& gpu) {
  const auto add = [](std::vector<LeaseId>& leases, LeaseId id) {
    if (std::find(leases.begin(), leases.end(), id) == leases.end()) leases.push_back(id);
  };
  for (const Occupant& lease : view_.leases) {
    const bool here = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
      return share.uuid == gpu.room().info.uuid;
    });
    if (lease.kind != LeaseKind::kFiller || !here || lease.ending) continue;
    const bool enough = lease.stays && !lease.moved_out &&
                        gpu.fits_beside(request, until(request, now_), *lease.stays);
    add(enough ? decision_.move_out : decision_.evict, lease.id);
  }
}

void Planner::keep(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting,
                   Source source) {
  explain(request, gpus, waiting);
  if (!request.keeps && source == Source::kPlan) return;
  for (GpuPlan* gpu : gpus) {
    gpu->add({from, until(request, from), gpu->size_of(request), source});
    waiting.planned.push_back(gpu->room().info.uuid);
    kept_for_.try_emplace(gpu->room().info.uuid, request.id, request.user);
  }
}

// What on this GPU is in the way of the request from then on: who is before it, else the lease that goes last, or a booking.
std::optional<NextFree> Planner::in_the_way(const Request& request, const GpuPlan& gpu,
                                            WallTime from) const {
  const auto against = GpuPlan::against(request);
  if (gpu.fits(request, from, until(request, from), against)) return std::nullopt;
  NextFree next;
  next.gpu = name_of(gpu.room(), view_.rooms);
  const Occupant* const lease = lease_in_the_way(request, gpu, view_.leases, from, now_);
  if (lease) {
    const WallTime end = end_of(*lease, now_);
    next.at = end == kNever ? std::nullopt : std::optional(end);
    next.user = lease->user;
    next.lease = lease->id;
    next.kind = lease->kind;
    next.ending = lease->ending;
    next.expired = lease->expired;
  }
  const auto kept = kept_for_.find(gpu.room().info.uuid);
  // Whoever came first gets it when the lease ends.
  if (kept != kept_for_.end() && (from == now_ || !lease)) {
    next.behind = kept->second.first;
    next.user = kept->second.second;
  }
  const bool for_now = gpu.fits(request, from, from + kAnyMoment, against);
  if ((lease || next.behind) && !for_now) return next;
  return booked_on(request, gpu, from).value_or(next);
}

// The last booking there that the request would overlap.
std::optional<NextFree> Planner::booked_on(const Request& request, const GpuPlan& gpu,
                                           WallTime from) const {
  std::optional<NextFree> last;
  WallTime last_end = from;
  for (const Booked& booked : view_.bookings) {
    const bool here = std::any_of(booked.gpus.begin(), booked.gpus.end(), [&](const auto& share) {
      return share.uuid == gpu.room().info.uuid;
    });
    if (!here || booked.from >= until(request, from) || booked.until <= last_end) continue;
    last_end = booked.until;
    last.emplace();
    last->gpu = name_of(gpu.room(), view_.rooms);
    last->user = booked.user;
    last->booking = booked.id;
    if (last_end != kNever) last->at = last_end;
  }
  return last;
}

void Planner::explain(const Request& request, const Gpus& gpus, Waiting& waiting) {
  const GpuPlan* next = nullptr;
  for (const GpuPlan* gpu : gpus) {
    const auto obstacle = in_the_way(request, *gpu, now_);
    if (!obstacle) {
      ++waiting.free;
      continue;
    }
    // The first of them that is expected to go; one with a known time rather than one without.
    const auto rank = [](const NextFree& n) { return n.behind ? kNever : n.at.value_or(kNever); };
    if (waiting.next && rank(*obstacle) >= rank(*waiting.next)) continue;
    waiting.next = obstacle;
    next = gpu;
  }
  if (next) waiting.crowded = crowded(request, *next, view_.rooms, now_);
}

std::map<GpuUuid, std::string> Planner::kept_for_others(const Request& request,
                                                        const Gpus& gpus) const {
  std::map<GpuUuid, std::string> kept;
  for (const GpuPlan* gpu : gpus) {
    const auto known = kept_for_.find(gpu->room().info.uuid);
    if (known == kept_for_.end()) continue;
    if (gpu->fits(request, now_, until(request, now_), GpuPlan::against(request))) continue;
    const auto& [id, user] = known->second;
    kept.emplace(known->first, fmt::format("{} of {}", to_string(id), display_text(user, 32)));
  }
  return kept;
}

void Planner::plan(const Request& request, int position) {
  Waiting waiting;
  waiting.request = request.id;
  waiting.position = position;
  waiting.keeps = request.keeps;
  waiting.wanted = static_cast<int>(wanted_gpus(request));
  const std::size_t granted = decision_.grants.size();
  if (auto refusal = impossible(request.placement, view_.rooms)) {
    decision_.impossible.emplace_back(request.id, std::move(refusal->error));
    return;
  }
  const Gpus gpus = usable(request, waiting);
  const bool is_last = !view_.queue.empty() && &request == &view_.queue.back();
  if (is_last) waiting.kept = kept_for_others(request, gpus);
  if (waiting.out_of_service.empty()) {
    bool planned = plan_at(request, gpus, now_, waiting);
    if (!planned) {
      waiting.free_now = free_now(request, gpus, now_);
      waiting.free_until = free_until(request, gpus, view_, kept_for_, now_);
      for (const WallTime from : possible_starts(request, gpus)) {
        planned = from != now_ && plan_at(request, gpus, from, waiting);
        if (planned) break;
      }
    }
    if (!planned && request.kind == LeaseKind::kFiller) explain(request, gpus, waiting);
    if (!planned && request.kind != LeaseKind::kFiller) plan_for_some_day(request, gpus, waiting);
  }
  if (decision_.grants.size() == granted) decision_.waiting.push_back(std::move(waiting));
}

void Planner::mark_held() {
  for (const auto& [uuid, holder] : kept_for_) {
    const GpuPlan* gpu = find(uuid);
    if (!gpu) continue;
    const auto& uses = gpu->timeline().uses();
    const auto is_plan = [](const GpuTimeline::Use& use) {
      return use.source == Source::kPlan || use.source == Source::kDue;
    };
    WallTime first = kNever;
    for (const auto& use : uses) first = is_plan(use) ? std::min(first, use.from) : first;
    // One that waits until a booking is over holds nothing before it.
    const bool idle = std::all_of(uses.begin(), uses.end(), [&](const auto& use) {
      return is_plan(use) || (use.source == Source::kBooking && use.from > first);
    });
    if (idle) decision_.held.emplace(uuid, holder.first);
  }
}

QueueDecision Planner::take() {
  mark_held();
  for (const GpuPlan& gpu : gpus_) {
    for (const GpuTimeline::Use& use : gpu.timeline().uses()) {
      const bool plan = use.source == Source::kPlan || use.source == Source::kDue;
      if (plan) decision_.plans[gpu.room().info.uuid].push_back(use);
    }
  }
  return std::move(decision_);
}

Planner::Later Planner::later(const Request& request, WallTime from) {
  Later later;
  Waiting waiting;
  const Gpus gpus = usable(request, waiting);
  later.out_of_service = waiting.out_of_service;
  std::vector<Candidate> candidates;
  const WallTime end = until(request, from);
  for (const GpuPlan* gpu : gpus) {
    if (gpu->fits(request, from, end, GpuPlan::against(request))) {
      const Bytes capacity = capacity_for(request.placement, gpu->room());
      const auto taken = gpu->timeline().taken(from, end, GpuPlan::against(request));
      candidates.push_back({&gpu->room(), capacity - taken.value_or(capacity)});
    } else if (!later.obstacle) {
      later.obstacle = in_the_way(request, *gpu, from);
    }
  }
  later.fitting = candidates.size();
  const std::size_t wanted = wanted_gpus(request);
  if (!later.out_of_service.empty() || candidates.size() < wanted) return later;
  for (const GpuRoom* room : choose_gpus(request.placement, candidates, view_.topology, wanted)) {
    later.gpus.push_back(room->info.uuid);
  }
  // Named GPUs keep the order they were named in.
  if (!request.placement.gpus.empty()) later.gpus = request.placement.gpus;
  return later;
}

std::vector<GpuUuid> Planner::start_of(const Request& request) const {
  if (impossible(request.placement, view_.rooms)) return {};
  Planner trial(view_, now_, gpus_);
  Waiting waiting;
  const Gpus usable = trial.usable(request, waiting);
  if (!waiting.out_of_service.empty() || !trial.plan_at(request, usable, now_, waiting)) return {};
  if (trial.decision_.grants.empty()) return waiting.planned;
  std::vector<GpuUuid> gpus;
  for (const LeaseGpu& share : trial.decision_.grants.front().gpus) gpus.push_back(share.uuid);
  return gpus;
}

}  // namespace gpurota::lease
