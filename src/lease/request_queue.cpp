#include "lease/request_queue.h"

#include "base/text.h"
#include "lease/gpu_choice.h"
#include "lease/gpu_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::lease {
namespace {

using Against = GpuTimeline::Against;
using Source = GpuTimeline::Source;

// What goes any moment has an end that is not now: nobody can start before it has gone.
constexpr std::chrono::milliseconds kAnyMoment{1};

struct Slot {
  const GpuRoom* room = nullptr;
  GpuTimeline timeline{};
  WallTime swap_until{};  // when the last swap lease ends that is there
};

class Planner {
 public:
  Planner(const QueueView& view, WallTime now) : view_(view), now_(now) {
    for (const GpuRoom& room : view.rooms) slots_.push_back({&room});
    for (const Occupant& lease : view.leases) {
      const auto source = lease.kind == LeaseKind::kFiller ? Source::kFiller : Source::kLease;
      for (const LeaseGpu& share : lease.gpus) {
        if (Slot* slot = find(share.uuid)) {
          if (source == Source::kFiller) {
            slot->timeline.add({now, end_of(lease), share_of(lease), source});
            continue;
          }
          slot->timeline.add({now, end_of(lease), {share.limit, share.swap}, source});
          if (share.swap) slot->swap_until = std::max(slot->swap_until, end_of(lease));
        }
      }
    }
    // What they cannot move is beside the largest of them.
    for (Slot& slot : slots_) {
      if (slot.swap_until > now) {
        slot.timeline.add({now, slot.swap_until, {slot.room->swap_needed, true}, Source::kLease});
      }
    }
  }

  // In the order of the queue, fillers last: they take what is left.
  void plan(const Request& request, int position);
  QueueDecision take() {
    mark_held();
    return std::move(decision_);
  }

 private:
  using Slots = std::vector<Slot*>;

  Slot* find(const GpuUuid& uuid) {
    const auto it = std::find_if(slots_.begin(), slots_.end(),
                                 [&](const Slot& slot) { return slot.room->info.uuid == uuid; });
    return it == slots_.end() ? nullptr : &*it;
  }
  WallTime end_of(const Occupant& lease) const {
    if (lease.ending) return now_ + kAnyMoment;
    return lease.ends ? std::max(*lease.ends, now_ + kAnyMoment) : kNever;
  }
  // Nobody shares a GPU with a filler that is there.
  static GpuTimeline::Share share_of(const Occupant& filler) {
    if (filler.moved_out && filler.stays && !filler.ending) return {filler.stays, false};
    return {};
  }
  static GpuTimeline::Share size_on(const Request& request, const Slot& slot) {
    if (request.placement.exclusive() || request.kind == LeaseKind::kFiller) return {};
    return {least_of(request.placement, *slot.room), request.placement.swap};
  }
  bool fits(const Request& request, const Slot& slot, WallTime from, WallTime until,
            Against against) const {
    const Bytes capacity = capacity_for(request.placement, *slot.room);
    const GpuTimeline::Share share = size_on(request, slot);
    // Beside what the swap leases there cannot move; what that will be later, nobody knows.
    const bool beside = !share.swap || from > now_ ||
                        slot.timeline.slices(from, from + kAnyMoment, against) + *share.bytes <=
                            capacity - slot.room->swap_wired;
    return beside && slot.timeline.fits(share, from, until, against, capacity);
  }
  // If the filler that is there were moved out.
  bool fits_beside(const Request& request, const Slot& slot, Bytes stays) const {
    Slot trial{slot.room, {}, slot.swap_until};
    for (GpuTimeline::Use use : slot.timeline.uses()) {
      if (use.source == Source::kFiller) use.share = {stays, false};
      trial.timeline.add(use);
    }
    return fits(request, trial, now_, until(request, now_), Against::kAllButPlans);
  }
  static Against against(const Request& request) {
    return request.kind == LeaseKind::kFiller ? Against::kAllButPlans : Against::kAllButFillers;
  }
  WallTime until(const Request& request, WallTime from) const {
    return request.lasts ? from + *request.lasts : kNever;
  }

  Slots usable(const Request& request, Waiting& waiting);
  std::vector<WallTime> possible_starts(const Request& request, const Slots& slots) const;
  Slots choose(const Request& request, const Slots& fitting, WallTime from);
  bool plan_at(const Request& request, const Slots& slots, WallTime from, Waiting& waiting);
  void plan_for_some_day(const Request& request, const Slots& slots, Waiting& waiting);
  void start(const Request& request, const Slots& slots, Waiting& waiting);
  void make_way(const Request& request, const Slot& slot);
  void keep(const Request& request, const Slots& slots, WallTime from, Waiting& waiting,
            Source source = Source::kPlan);
  void explain(const Request& request, const Slots& slots, Waiting& waiting);
  std::optional<NextFree> in_the_way(const Request& request, const Slot& slot) const;
  std::map<GpuUuid, std::string> kept_for_others(const Request& request, const Slots& slots) const;
  void mark_held();

  const QueueView& view_;
  const WallTime now_;
  std::vector<Slot> slots_;
  QueueDecision decision_;
  std::map<GpuUuid, std::pair<RequestId, std::string>> kept_for_;  // by whom first
};

std::size_t wanted(const Request& request) {
  return request.placement.gpus.empty() ? static_cast<std::size_t>(request.placement.count)
                                        : request.placement.gpus.size();
}

// The GPUs that can be planned with. Too few: `waiting` says why.
Planner::Slots Planner::usable(const Request& request, Waiting& waiting) {
  Slots slots;
  std::string why;
  const auto& named = request.placement.gpus;
  PlacementRequest asked = request.placement;
  if (request.kind == LeaseKind::kFiller) {
    asked.memory.reset();
    asked.swap = false;
  }
  for (Slot& slot : slots_) {
    const GpuRoom& room = *slot.room;
    if (!leasable(room)) continue;
    if (!named.empty() && std::find(named.begin(), named.end(), room.info.uuid) == named.end()) {
      continue;
    }
    const std::string out = out_of_service(asked, room);
    const auto size = size_on(request, slot).bytes;
    if (!out.empty() || (size && *size > capacity_for(request.placement, room))) {
      why += (why.empty() ? "GPU " : "; GPU ") + name_of(room, view_.rooms) + " " +
             (out.empty() ? "has too little left beside what runs there without a lease" : out);
    } else {
      slots.push_back(&slot);
    }
  }
  if (slots.size() < wanted(request)) {
    waiting.out_of_service = why.empty() ? "a GPU is missing" : why;
  }
  return slots;
}

std::vector<WallTime> Planner::possible_starts(const Request& request, const Slots& slots) const {
  std::set<WallTime> times = {now_};
  // A filler has no right to a GPU before it has one: now or not at all.
  if (request.kind == LeaseKind::kFiller) return {now_};
  for (const Slot* slot : slots) {
    for (const GpuTimeline::Use& use : slot->timeline.uses()) {
      if (use.until != kNever && use.source != Source::kFiller) times.insert(use.until);
    }
  }
  return {times.begin(), times.end()};
}

Planner::Slots Planner::choose(const Request& request, const Slots& fitting, WallTime from) {
  const auto by_index = [](const Slot* a, const Slot* b) {
    return a->room->info.index < b->room->info.index;
  };
  Slots chosen = fitting;
  if (from > now_) {
    // Those that are free first, so that it starts early if others end early.
    std::stable_sort(chosen.begin(), chosen.end(), [&](const Slot* a, const Slot* b) {
      return a->timeline.free_from(size_on(request, *a), now_, against(request),
                                   capacity_for(request.placement, *a->room)) <
             b->timeline.free_from(size_on(request, *b), now_, against(request),
                                   capacity_for(request.placement, *b->room));
    });
    chosen.resize(wanted(request));
    std::sort(chosen.begin(), chosen.end(), by_index);
    return chosen;
  }
  std::vector<Candidate> candidates;
  for (const bool clear : {true, false}) {  // with fillers on them only if there are too few others
    for (const Slot* slot : fitting) {
      const WallTime end = until(request, from);
      if (fits(request, *slot, from, end, Against::kAllButPlans) != clear) continue;
      const auto taken = request.placement.swap ? slot->timeline.slices(from, end, against(request))
                                                : slot->timeline.taken(from, end, against(request));
      const Bytes capacity = capacity_for(request.placement, *slot->room);
      candidates.push_back({slot->room, capacity - taken.value_or(capacity)});
    }
    if (candidates.size() >= wanted(request)) break;
  }
  chosen.clear();
  for (const GpuRoom* room :
       choose_gpus(request.placement, candidates, view_.topology, wanted(request))) {
    for (Slot* slot : fitting) {
      if (slot->room == room) chosen.push_back(slot);
    }
  }
  return chosen;
}

bool Planner::plan_at(const Request& request, const Slots& slots, WallTime from, Waiting& waiting) {
  Slots fitting;
  for (Slot* slot : slots) {
    if (fits(request, *slot, from, until(request, from), against(request))) fitting.push_back(slot);
  }
  if (fitting.size() < wanted(request)) return false;
  const Slots chosen = choose(request, fitting, from);
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
void Planner::plan_for_some_day(const Request& request, const Slots& slots, Waiting& waiting) {
  const auto key = [&](const Slot* slot) {
    const auto endless = std::count_if(
        slot->timeline.uses().begin(), slot->timeline.uses().end(),
        [&](const auto& use) { return use.until == kNever && use.source != Source::kFiller; });
    return std::pair(slot->timeline.free_from(size_on(request, *slot), now_, against(request),
                                              capacity_for(request.placement, *slot->room)),
                     endless);
  };
  Slots chosen = slots;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const Slot* a, const Slot* b) { return key(a) < key(b); });
  chosen.resize(wanted(request));
  keep(request, chosen, now_, waiting);
}

void Planner::start(const Request& request, const Slots& slots, Waiting& waiting) {
  const WallTime end = until(request, now_);
  bool clear = true;
  if (request.kind != LeaseKind::kFiller) {
    for (const Slot* slot : slots) {
      if (fits(request, *slot, now_, end, Against::kAllButPlans)) continue;
      clear = false;
      waiting.way_made = name_of(*slot->room, view_.rooms);
      make_way(request, *slot);
    }
  }
  if (!clear) {
    waiting.expected = now_ + kAnyMoment;
    keep(request, slots, now_, waiting, Source::kDue);
    return;
  }
  Grant grant{request.id, {}};
  const auto source = request.kind == LeaseKind::kFiller ? Source::kFiller : Source::kLease;
  const auto share_on = [&](const Slot& slot) {
    return make_share(request.placement, *slot.room,
                      slot.timeline.slices(now_, now_ + kAnyMoment, Against::kAllButPlans));
  };
  // Named GPUs keep the order they were named in.
  for (const GpuUuid& uuid : request.placement.gpus) {
    if (const Slot* slot = find(uuid)) {
      grant.gpus.push_back(share_on(*slot));
    }
  }
  if (grant.gpus.empty()) {
    for (const Slot* slot : slots) {
      grant.gpus.push_back(share_on(*slot));
    }
  }
  for (const LeaseGpu& share : grant.gpus) {
    Slot* slot = find(share.uuid);
    const auto limit = source == Source::kFiller ? std::optional<Bytes>() : share.limit;
    slot->timeline.add({now_, end, {limit, share.swap}, source});
  }
  decision_.grants.push_back(std::move(grant));
}

// The filler in the way ends, unless it is enough that it is moved out.
void Planner::make_way(const Request& request, const Slot& slot) {
  const auto add = [](std::vector<LeaseId>& leases, LeaseId id) {
    if (std::find(leases.begin(), leases.end(), id) == leases.end()) leases.push_back(id);
  };
  for (const Occupant& lease : view_.leases) {
    const bool here = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
      return share.uuid == slot.room->info.uuid;
    });
    if (lease.kind != LeaseKind::kFiller || !here || lease.ending) continue;
    const bool enough = lease.stays && !lease.moved_out && fits_beside(request, slot, *lease.stays);
    add(enough ? decision_.move_out : decision_.evict, lease.id);
  }
}

void Planner::keep(const Request& request, const Slots& slots, WallTime from, Waiting& waiting,
                   Source source) {
  explain(request, slots, waiting);
  if (!request.keeps && source == Source::kPlan) return;
  for (Slot* slot : slots) {
    slot->timeline.add({from, until(request, from), size_on(request, *slot), source});
    waiting.planned.push_back(slot->room->info.uuid);
    kept_for_.try_emplace(slot->room->info.uuid, request.id, request.user);
  }
}

// What on this GPU is in the way of the request: who is before it, else the lease that goes last.
std::optional<NextFree> Planner::in_the_way(const Request& request, const Slot& slot) const {
  if (fits(request, slot, now_, until(request, now_), against(request))) return std::nullopt;
  NextFree next;
  next.gpu = name_of(*slot.room, view_.rooms);
  bool found = false;
  for (const Occupant& lease : view_.leases) {
    if (lease.kind == LeaseKind::kFiller) continue;
    const bool here = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
      return share.uuid == slot.room->info.uuid;
    });
    if (!here) continue;
    const WallTime end = end_of(lease);
    if (found && (!next.at || (end != kNever && end <= *next.at))) continue;
    found = true;
    next.at = end == kNever ? std::nullopt : std::optional(end);
    next.user = lease.user;
    next.lease = lease.id;
    next.kind = lease.kind;
    next.ending = lease.ending;
    next.expired = lease.expired;
  }
  const auto kept = kept_for_.find(slot.room->info.uuid);
  // Whoever came first gets it when the lease ends.
  if (kept != kept_for_.end()) {
    next = {};
    next.gpu = name_of(*slot.room, view_.rooms);
    next.behind = kept->second.first;
    next.user = kept->second.second;
  }
  return next;
}

void Planner::explain(const Request& request, const Slots& slots, Waiting& waiting) {
  for (const Slot* slot : slots) {
    const auto obstacle = in_the_way(request, *slot);
    if (!obstacle) {
      ++waiting.free;
      continue;
    }
    // The first of them that is expected to go; one with a known time rather than one without.
    const auto rank = [](const NextFree& n) { return n.at.value_or(kNever); };
    if (!waiting.next || rank(*obstacle) < rank(*waiting.next)) waiting.next = obstacle;
  }
}

std::map<GpuUuid, std::string> Planner::kept_for_others(const Request& request,
                                                        const Slots& slots) const {
  std::map<GpuUuid, std::string> kept;
  for (const Slot* slot : slots) {
    const auto known = kept_for_.find(slot->room->info.uuid);
    if (known == kept_for_.end()) continue;
    if (fits(request, *slot, now_, until(request, now_), against(request))) continue;
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
  waiting.wanted = static_cast<int>(wanted(request));
  const std::size_t granted = decision_.grants.size();
  if (auto refusal = impossible(request.placement, view_.rooms)) {
    decision_.impossible.emplace_back(request.id, std::move(refusal->error));
    return;
  }
  const Slots slots = usable(request, waiting);
  if (&request == &view_.queue.back()) waiting.kept = kept_for_others(request, slots);
  if (waiting.out_of_service.empty()) {
    bool planned = false;
    for (const WallTime from : possible_starts(request, slots)) {
      planned = plan_at(request, slots, from, waiting);
      if (planned) break;
    }
    if (!planned && request.kind == LeaseKind::kFiller) explain(request, slots, waiting);
    if (!planned && request.kind != LeaseKind::kFiller) plan_for_some_day(request, slots, waiting);
  }
  if (decision_.grants.size() == granted) decision_.waiting.push_back(std::move(waiting));
}

void Planner::mark_held() {
  for (const auto& [uuid, holder] : kept_for_) {
    const Slot* slot = find(uuid);
    if (!slot) continue;
    const auto& uses = slot->timeline.uses();
    const bool idle = std::all_of(uses.begin(), uses.end(), [](const auto& use) {
      return use.source == Source::kPlan || use.source == Source::kDue;
    });
    if (idle) decision_.held.emplace(uuid, holder.first);
  }
}

}  // namespace

QueueDecision decide(const QueueView& view, WallTime now) {
  Planner planner(view, now);
  int planned = 0;
  std::vector<Waiting> beyond;
  for (const bool fillers : {false, true}) {
    for (std::size_t i = 0; i < view.queue.size(); ++i) {
      const Request& request = view.queue[i];
      if ((request.kind == LeaseKind::kFiller) != fillers) continue;
      if (++planned <= kMaxPlanned) {
        planner.plan(request, static_cast<int>(i) + 1);
      } else {
        Waiting waiting;
        waiting.request = request.id;
        waiting.position = static_cast<int>(i) + 1;
        waiting.wanted = static_cast<int>(wanted(request));
        beyond.push_back(std::move(waiting));
      }
    }
  }
  QueueDecision decision = planner.take();
  decision.waiting.insert(decision.waiting.end(), beyond.begin(), beyond.end());
  std::sort(decision.waiting.begin(), decision.waiting.end(),
            [](const Waiting& a, const Waiting& b) { return a.position < b.position; });
  // Positions count those who still wait.
  for (std::size_t i = 0; i < decision.waiting.size(); ++i) {
    decision.waiting[i].position = static_cast<int>(i) + 1;
  }
  return decision;
}

}  // namespace gpurota::lease
