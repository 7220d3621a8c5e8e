#include "lease/planner.h"

#include "base/text.h"
#include "core/local_time.h"
#include "lease/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::lease {
namespace {

// Whether the use is a binding plan of a waiting request.
bool is_plan(const GpuTimeline::Use& use) {
  using Source = GpuTimeline::Source;
  return use.source == Source::kPlan || use.source == Source::kProtected ||
         use.source == Source::kDue;
}

// The `count` GPUs with the least key; among equals the first. Each key is computed only once,
// because that is expensive.
template <class Key>
std::vector<GpuPlan*> least_first(const std::vector<GpuPlan*>& gpus, std::size_t count, Key key) {
  std::vector<std::pair<decltype(key(*gpus.front())), GpuPlan*>> order;
  for (GpuPlan* gpu : gpus) order.emplace_back(key(*gpu), gpu);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<GpuPlan*> least;
  for (const auto& [unused, gpu] : order) {
    if (least.size() < count) least.push_back(gpu);
  }
  return least;
}

std::string too_little_left(const GpuRoom& room) {
  return room.machine_use.is_zero()
             ? "has too little left beside what runs there without a lease"
             : "has too little left beside what other programs use of the machine's memory";
}

}  // namespace

std::size_t wanted_gpus(const Request& request) {
  return request.placement.gpus.empty() ? static_cast<std::size_t>(request.placement.count)
                                        : request.placement.gpus.size();
}

Planner::Planner(const QueueView& view, WallTime now, Plans plans)
    : view_(view), now_(now), plans_(plans) {
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
             (out.empty() ? too_little_left(room) : out);
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
  // A filler has no claim to a GPU: it starts now or is not planned.
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
  if (from > now_) {
    // First the GPUs that are free earliest, so that the request starts early if leases end early.
    Gpus chosen = least_first(fitting, wanted_gpus(request),
                              [&](const GpuPlan& gpu) { return gpu.free_from(request); });
    std::sort(chosen.begin(), chosen.end(), by_index);
    return chosen;
  }
  Gpus chosen;
  for (const GpuRoom* room : choose_gpus(request.placement, candidates(request, fitting, from),
                                         view_.topology, wanted_gpus(request))) {
    for (GpuPlan* gpu : fitting) {
      if (&gpu->room() == room) chosen.push_back(gpu);
    }
  }
  return chosen;
}

std::vector<Candidate> Planner::candidates(const Request& request, const Gpus& fitting,
                                           WallTime from) const {
  Gpus considered = fitting;
  const std::size_t wanted = wanted_gpus(request);
  if (request.unbooked_for && considered.size() > wanted) {
    // Consider only the GPUs whose bookings begin latest, because the lease may have to leave when
    // the first of these bookings begins.
    std::vector<WallTime> booked;
    for (const GpuPlan* gpu : considered) booked.push_back(gpu->booked_from());
    std::sort(booked.begin(), booked.end(), std::greater<>());
    const WallTime latest = booked[wanted - 1];
    std::erase_if(considered, [&](const GpuPlan* gpu) { return gpu->booked_from() < latest; });
  }
  const WallTime end = until(request, from);
  std::vector<Candidate> candidates;
  for (const bool clear : {true, false}) {  // GPUs with fillers only if there are too few others
    for (const GpuPlan* gpu : considered) {
      if (gpu->fits(request, from, end, Against::kAllButPlans) != clear) continue;
      const auto others = against(request, from);
      const auto taken = request.placement.swap
                             ? std::optional(gpu->slices(request, from, end, others))
                             : gpu->taken(request, from, end, others);
      const Bytes capacity = capacity_for(request.placement, gpu->room());
      candidates.push_back({&gpu->room(), capacity - taken.value_or(capacity)});
    }
    if (candidates.size() >= wanted) break;
  }
  return candidates;
}

bool Planner::plan_at(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting) {
  Gpus fitting;
  for (GpuPlan* gpu : gpus) {
    if (gpu->fits(request, from, until(request, from), against(request, from))) {
      fitting.push_back(gpu);
    }
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

// Plans the request at the earliest end of a use at which it fits.
bool Planner::plan_later(const Request& request, const Gpus& gpus, Waiting& waiting) {
  Gpus later = gpus;
  std::erase_if(later, [&](const GpuPlan* gpu) { return !gpu->may_fit_later(request); });
  if (later.size() < wanted_gpus(request)) return false;
  for (const WallTime from : possible_starts(request, gpus)) {
    if (from != now_ && plan_at(request, later, from, waiting)) return true;
  }
  return false;
}

// The start is unknown. The GPUs that are likely to be free first are kept: those that are free,
// those whose time is known, then those with the fewest leases. As no new lease starts on a kept
// GPU, its number of leases never grows, and the request starts when these leases have ended.
void Planner::plan_for_some_day(const Request& request, const Gpus& gpus, Waiting& waiting) {
  const auto key = [&](const GpuPlan& gpu) {
    const auto endless = std::count_if(
        gpu.timeline().uses().begin(), gpu.timeline().uses().end(),
        [&](const auto& use) { return use.until == kNever && use.source != Source::kFiller; });
    return std::pair(gpu.free_from(request), endless);
  };
  keep(request, least_first(gpus, wanted_gpus(request), key), now_, waiting);
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
    explain(request, gpus, waiting);
    hold_for(request, gpus, now_, Source::kDue, waiting);
    return;
  }
  Grant grant{request.id, {}};
  const auto source = request.kind == LeaseKind::kFiller ? Source::kFiller : Source::kLease;
  // The share leaves room for the current leases, and for bookings that begin while it lasts.
  const auto share_on = [&](const GpuPlan& gpu) {
    return make_share(request.placement, gpu.room(),
                      gpu.slices(request, now_, end, Against::kPromised));
  };
  // Named GPUs keep the order of the names.
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
    gpu->add({now_, end, {limit, share.swap, share.compute.least, request.uid}, source});
  }
  decision_.grants.push_back(std::move(grant));
}

// The filler in the way ends, unless it is enough to move it to host memory.
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

bool Planner::is_protected(const Request& request, WallTime from) const {
  if (!view_.keeping || from > now_ + kProtectedFor) return false;
  const auto first = std::find_if(view_.queue.begin(), view_.queue.end(), [](const Request& each) {
    return each.kind != LeaseKind::kFiller;
  });
  return first != view_.queue.end() && first->id == request.id &&
         view_.keeping->may_protect(request.id, request.waited);
}

void Planner::keep(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting) {
  explain(request, gpus, waiting);
  const bool safe = waiting.expected && is_protected(request, from);
  if (safe) decision_.keeping.protected_request = request.id;
  hold_for(request, gpus, from, safe ? Source::kProtected : Source::kPlan, waiting);
  const auto is_kept = [&](const GpuPlan* gpu) {
    return !is_lapsed(*gpu) &&
           gpu->fits(request, now_, now_ + kAnyMoment, Against::kLeasesAndFillers);
  };
  waiting.keeps = safe || waiting.free == 0 || std::any_of(gpus.begin(), gpus.end(), is_kept);
}

void Planner::hold_for(const Request& request, const Gpus& gpus, WallTime from, Source source,
                       Waiting& waiting) {
  for (GpuPlan* gpu : gpus) {
    const bool lapsed = source == Source::kPlan && is_lapsed(*gpu);
    gpu->add(
        {from, until(request, from), gpu->size_of(request), lapsed ? Source::kLapsed : source});
    waiting.planned.push_back(gpu->room().info.uuid);
    kept_for_.try_emplace(gpu->room().info.uuid, request.id, request.user);
  }
}

// The obstacle of a request on this GPU that would start at `from`: an earlier request, else a
// lease, or a booking.
std::optional<NextFree> Planner::in_the_way(const Request& request, const GpuPlan& gpu,
                                            WallTime from) const {
  const auto others = against(request, from);
  if (gpu.fits(request, from, until(request, from), others)) return std::nullopt;
  NextFree next;
  next.gpu = name_of(gpu.room(), view_.rooms);
  const Occupant* const lease = lease_in_the_way(request, gpu, others, view_.leases, from, now_);
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
  // The earlier request gets the GPU when the lease ends.
  if (kept != kept_for_.end() && (from == now_ || !lease)) {
    next.behind = kept->second.first;
    next.user = kept->second.second;
  }
  const bool for_now = gpu.fits(request, from, from + kAnyMoment, others);
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
    // Choose the obstacle that is expected to end first. Obstacles with a known end precede those
    // without.
    const auto rank = [](const NextFree& n) { return n.behind ? kNever : n.at.value_or(kNever); };
    if (waiting.next && rank(*obstacle) >= rank(*waiting.next)) continue;
    waiting.next = obstacle;
    next = gpu;
  }
  if (next) waiting.crowded = crowded(request, *next, against_now(request), view_.rooms, now_);
}

std::string Planner::obstacle_on(const Request& request, const GpuPlan& gpu) const {
  const GpuRoom& room = gpu.room();
  const Against others = against_now(request);
  const WallTime end = until(request, now_);
  const auto out = out_of_service(request.placement, room);
  if (out.empty() && gpu.fits(request, now_, end, others)) return {};
  if (!room.error.empty() || room.draining) return out;
  // Name present leases first, then plans, then bookings.
  if (!gpu.fits(request, now_, now_ + kAnyMoment, Against::kLeasesAndFillers) || !out.empty()) {
    return what_is_there(request.placement, room);
  }
  const auto kept = kept_for_.find(room.info.uuid);
  if (kept != kept_for_.end() && gpu.fits(request, now_, end, Against::kPromised)) {
    const auto& [id, user] = kept->second;
    return fmt::format("is kept for {} of {}, which {} first", to_string(id),
                       display_text(user, 32), id < request.id ? "came" : "goes");
  }
  if (const auto booked = booked_on(request, gpu, now_)) {
    const auto booking =
        std::find_if(view_.bookings.begin(), view_.bookings.end(),
                     [&](const Booked& each) { return each.id == *booked->booking; });
    return fmt::format("is booked by {} from {} on ({})", display_text(booked->user, 32),
                       local_time_text(booking->from, now_), to_string(booking->id));
  }
  return what_is_there(request.placement, room);
}

std::vector<std::pair<const GpuRoom*, std::string>> Planner::obstacles(
    const Request& request) const {
  std::vector<std::pair<const GpuRoom*, std::string>> all;
  for (const GpuRoom* const room : meant(request.placement, view_.rooms)) {
    const auto plan = std::find_if(gpus_.begin(), gpus_.end(),
                                   [&](const GpuPlan& gpu) { return &gpu.room() == room; });
    all.emplace_back(room, obstacle_on(request, *plan));
  }
  return all;
}

Planner::Against Planner::against_now(const Request& request) const {
  if (request.kind == LeaseKind::kFiller) return Against::kAllButPlans;
  const bool open = view_.keeping && view_.keeping->is_open(request.id);
  return open ? Against::kOpenStart : Against::kStart;
}

std::vector<bool> Planner::planned_places(bool fillers) const {
  std::map<uid_t, std::vector<std::size_t>> by_owner;
  std::size_t left = 0;
  for (std::size_t i = 0; i < view_.queue.size(); ++i) {
    if ((view_.queue[i].kind == LeaseKind::kFiller) != fillers) continue;
    by_owner[view_.queue[i].owner].push_back(i);
    ++left;
  }
  left = std::min<std::size_t>(left, kMaxPlanned);
  std::vector<bool> planned(view_.queue.size(), false);
  for (std::size_t round = 0; left > 0; ++round) {
    // One place for each owner, in the order of their requests in this round.
    std::vector<std::size_t> places;
    for (const auto& [owner, own] : by_owner) {
      if (round < own.size()) places.push_back(own[round]);
    }
    std::sort(places.begin(), places.end());
    if (places.size() > left) places.resize(left);
    for (const std::size_t place : places) planned[place] = true;
    left -= places.size();
  }
  return planned;
}

void Planner::plan_queue(std::size_t end, bool fillers) {
  const std::vector<bool> planned = planned_places(fillers);
  for (std::size_t i = 0; i < end; ++i) {
    const Request& request = view_.queue[i];
    if ((request.kind == LeaseKind::kFiller) != fillers) continue;
    const int position = static_cast<int>(i) + 1;
    if (planned[i]) {
      plan(request, position);
    } else {
      try_unplanned(request, position);
    }
  }
}

// Planning never frees anything, so if one request did not fit, an equal one does not fit either.
void Planner::try_unplanned(const Request& request, int position) {
  const auto is_alike = [&](const Request* other) {
    return other->kind == request.kind && other->lasts == request.lasts &&
           other->unbooked_for == request.unbooked_for &&
           against_now(*other) == against_now(request) &&
           asks_the_same(other->placement, request.placement);
  };
  Waiting waiting;
  waiting.request = request.id;
  waiting.position = position;
  waiting.wanted = static_cast<int>(wanted_gpus(request));
  const bool known = std::any_of(unfit_.begin(), unfit_.end(), is_alike);
  if (!known && !impossible(request.placement, view_.rooms)) {
    const Gpus gpus = usable(request, waiting);
    const std::size_t granted = decision_.grants.size();
    if (waiting.out_of_service.empty()) plan_at(request, gpus, now_, waiting);
    if (decision_.grants.size() > granted) return;
  }
  if (!known && !waiting.way_made) unfit_.push_back(&request);
  waiting.out_of_service.clear();
  decision_.waiting.push_back(std::move(waiting));
}

void Planner::plan(const Request& request, int position) {
  Waiting waiting;
  waiting.request = request.id;
  waiting.position = position;
  waiting.wanted = static_cast<int>(wanted_gpus(request));
  const std::size_t granted = decision_.grants.size();
  if (auto refusal = impossible(request.placement, view_.rooms)) {
    decision_.impossible.emplace_back(request.id, std::move(refusal->error));
    return;
  }
  const Gpus gpus = usable(request, waiting);
  if (waiting.out_of_service.empty()) {
    bool planned = plan_at(request, gpus, now_, waiting);
    if (!planned) {
      waiting.free_now = free_now(request, against_now(request), gpus, now_);
      waiting.free_until = free_until(request, against_now(request), gpus, view_, kept_for_, now_);
      planned = plan_later(request, gpus, waiting);
    }
    const bool plans = plans_ == Plans::kAll && request.kind != LeaseKind::kFiller;
    if (!planned && plans) plan_for_some_day(request, gpus, waiting);
    if (!planned && request.kind == LeaseKind::kFiller) explain(request, gpus, waiting);
  }
  if (decision_.grants.size() == granted) decision_.waiting.push_back(std::move(waiting));
}

void Planner::mark_held() {
  for (const auto& [uuid, holder] : kept_for_) {
    const GpuPlan* gpu = find(uuid);
    if (!gpu) continue;
    const auto& uses = gpu->timeline().uses();
    WallTime first = kNever;
    for (const auto& use : uses) first = is_plan(use) ? std::min(first, use.from) : first;
    // A plan that begins after a booking holds nothing before the booking.
    const bool idle = std::all_of(uses.begin(), uses.end(), [&](const auto& use) {
      return is_plan(use) || (use.source == Source::kBooking && use.from > first);
    });
    if (idle) decision_.held.emplace(uuid, holder.first);
  }
}

QueueDecision Planner::take() {
  mark_held();
  for (const auto& [uuid, holder] : kept_for_) {
    decision_.keeping.planned_for.emplace(uuid, holder.first);
  }
  for (const GpuPlan& gpu : gpus_) {
    for (const GpuTimeline::Use& use : gpu.timeline().uses()) {
      if (is_plan(use)) decision_.plans[gpu.room().info.uuid].push_back(use);
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
      const auto taken = gpu->taken(request, from, end, GpuPlan::against(request));
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
  // Named GPUs keep the order of the names.
  if (!request.placement.gpus.empty()) later.gpus = request.placement.gpus;
  return later;
}

std::vector<GpuUuid> Planner::free_for(const Request& request) {
  if (impossible(request.placement, view_.rooms)) return {};
  Waiting waiting;
  Gpus fitting = usable(request, waiting);
  if (!waiting.out_of_service.empty()) return {};
  const WallTime end = until(request, now_);
  std::erase_if(fitting, [&](const GpuPlan* gpu) {
    return !gpu->fits(request, now_, end, against_now(request));
  });
  if (fitting.size() < wanted_gpus(request)) return {};
  std::vector<GpuUuid> gpus;
  for (const GpuPlan* gpu : choose(request, fitting, now_)) gpus.push_back(gpu->room().info.uuid);
  return gpus;
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
