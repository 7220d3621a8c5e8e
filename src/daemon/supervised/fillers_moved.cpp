// Fillers that leave a GPU without ending: put aside among those who take turns, until nobody needs the
// GPU. Another part of fillers.cpp. What is decided is in filler/yielding.h.
#include "base/log.h"
#include "daemon/supervised/fillers.h"

#include <fmt/format.h>

namespace gpurota::daemon {

const LeaseEntry* Fillers::swap_lease_of(const FillerSpot& spot) const {
  const LeaseEntry* const lease = spot.lease ? parts_.leases.find(*spot.lease) : nullptr;
  return lease && lease->lease.swap() && !lease->cause ? lease : nullptr;
}

filler::WayOut Fillers::way_out_of(const GpuUuid& gpu) const {
  const FillerSpot& spot = spots_.at(gpu);
  const auto it = spot.filler ? entries_.find(*spot.filler) : entries_.end();
  filler::Yielding yielding;
  if (it != entries_.end()) yielding.wish = it->second.wishes.on_yield;
  yielding.why = spot.turns.why();
  // Also of a lease that the queue has just ended: for a whole GPU, or because there is no room beside.
  yielding.can_be_moved = spot.lease.has_value();
  yielding.host_has_room = spot.lease && parts_.turns.turns().could_be_aside(*spot.lease);
  return filler::way_out(yielding);
}

void Fillers::yield(const GpuUuid& gpu, const std::string& reason) {
  FillerSpot& spot = spots_[gpu];
  if (spot.eviction || spot.moved_out) return leave(gpu, reason);
  const filler::WayOut way = way_out_of(gpu);
  if (way.how == filler::OnYield::kStop || !swap_lease_of(spot)) {
    return leave(gpu, reason + (way.because.empty() ? "" : ", and " + way.because));
  }
  record(proto::EventType::kFillerYielded, entries_.at(*spot.filler), gpu,
         fmt::format("is moved from {} to host memory: {}", gpu_name(gpu), reason));
  evict(gpu);
}

void Fillers::move_out(LeaseId lease, const std::string& why) {
  for (auto& [gpu, spot] : spots_) {
    if (spot.lease != lease || spot.told_to_end) continue;
    if (spot.eviction || spot.moved_out) return;
    filler::Sight wanted;
    wanted.wanted = true;
    if (spot.turns.look(wanted, parts_.loop.now())) return yield(gpu, why);
  }
  parts_.leases.end(lease, EndCause::kReleased, why);
}

void Fillers::evict(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  FillerEntry& entry = entries_.at(*spot.filler);
  filler::Eviction::Rules rules;
  rules.drain = entry.wishes.grace;
  spot.eviction.emplace(rules, parts_.loop.now());
  supervisor_.settle(entry);
  parts_.turns.set_aside(*spot.lease, true);
  look_at_evictions();
}

// Not from within whatever has just changed.
void Fillers::look_at_evictions() {
  if (looking_) return;
  bool any = false;
  for (const auto& [gpu, spot] : spots_) any |= spot.eviction.has_value();
  if (!any) return;
  looking_ = true;
  parts_.loop.post([this] {
    looking_ = false;
    for (auto& [gpu, spot] : spots_) step_eviction(gpu);
  });
}

filler::Eviction::Sight Fillers::eviction_sight(const GpuUuid& gpu) const {
  const FillerSpot& spot = spots_.at(gpu);
  filler::Eviction::Sight sight;
  const sched::Turns& turns = parts_.turns.turns();
  const TimePoint now = parts_.loop.now();
  const auto view = turns.explain(*spot.lease, now);
  const sched::Holding held = parts_.turns.holding(*spot.lease, gpu);
  sight.on_hold = turns.on_hold(now);
  sight.silent = view && view->process.value != 0;
  sight.drained = !view || view->phase == sched::Phase::kApart;
  sight.left = held.resident + held.coming;
  sight.stays = held.wired + held.beside + held.lingering;
  sight.counted = spot.counted;
  if (const GpuEntry* const entry = parts_.gpus.find(gpu)) sight.taken = entry->taken;
  return sight;
}

void Fillers::step_eviction(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  if (spot.moved_out) spot.stays = spot.counted.value_or(spot.stays);
  if (!spot.eviction) return;
  // Its lease has ended meanwhile, or it has: that takes its course.
  if (!swap_lease_of(spot)) return;
  switch (spot.eviction->look(eviction_sight(gpu), parts_.loop.now())) {
    case filler::Eviction::Step::kOut:
      return finish_eviction(gpu);
    case filler::Eviction::Step::kFailed: {
      const std::string problem = spot.eviction->problem();
      return leave(gpu, "it is ended instead of moved to host memory, because " + problem);
    }
    case filler::Eviction::Step::kGoing:
      break;
  }
  if (spot.eviction->wants_look()) parts_.samples.look_soon(gpu);
  auto timer = parts_.loop.add_timer(spot.eviction->next(), ports::Urgency::kSafety,
                                     [this, gpu] { step_eviction(gpu); });
  if (timer) spot.look_timer = std::move(*timer);
}

void Fillers::finish_eviction(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  spot.stays = spot.eviction->stays();
  spot.eviction.reset();
  spot.moved_out = true;
  // Not by what it was moved out for: its owner may have paused it since, or before this daemon started.
  if (!entries_.at(*spot.filler).paused) spot.stop_stay(parts_.loop.now());
  spot.turns.on_moved_out(parts_.loop.now());
  // `look_timer` may be what has called.
  parts_.loop.post([this, gpu] { spots_[gpu].look_timer.reset(); });
  parts_.samples.glimpse(gpu, Duration(0));
  log::info("a filler has been moved to host memory",
            {{"gpu", gpu.value}, {"index", gpu_name(gpu)}, {"stays", to_string(spot.stays)}});
  parts_.queue.poke();
}

void Fillers::bring_back(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  const auto it = spot.filler ? entries_.find(*spot.filler) : entries_.end();
  if (it == entries_.end() || !spot.moved_out || spot.told_to_end || !swap_lease_of(spot)) return;
  FillerEntry& entry = it->second;
  const TimePoint now = parts_.loop.now();
  const Duration idle = spot.turns.idle_for(now);
  if (entry.paused || entry.removed || idle < entry.wishes.idle_after) return;
  if (!parts_.turns.turns().could_come_back(*spot.lease)) return;
  spot.moved_out = false;
  spot.since = now;
  if (!spot.stays_from) spot.stays_from = now;
  supervisor_.settle(entry);
  spot.turns.on_started(now);
  parts_.samples.glimpse(gpu, filler::kSampleEvery);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle).count();
  record(proto::EventType::kFillerResumed, entry, gpu,
         fmt::format("continues on {}: nobody has used it for {} s", gpu_name(gpu), seconds));
  parts_.turns.set_aside(*spot.lease, false);
}

std::optional<MovableFillers::Stay> Fillers::stay_of(LeaseId lease) const {
  for (const auto& [gpu, spot] : spots_) {
    if (spot.lease != lease || spot.told_to_end || !swap_lease_of(spot)) continue;
    if (spot.moved_out) return Stay{spot.stays, true};
    if (!spot.eviction && way_out_of(gpu).how != filler::OnYield::kEvict) return std::nullopt;
    const sched::Holding held = parts_.turns.holding(lease, gpu);
    return Stay{held.wired + held.wired_unbacked + held.beside + held.lingering, false};
  }
  return std::nullopt;
}

bool Fillers::expects_look(const GpuUuid& gpu) const {
  const auto spot = spots_.find(gpu);
  return spot != spots_.end() && spot->second.eviction && spot->second.eviction->wants_look();
}

}  // namespace gpurota::daemon
