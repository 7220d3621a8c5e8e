#include "daemon/supervised/filler_moves.h"

#include "base/log.h"
#include "daemon/supervised/fillers.h"

#include <fmt/format.h>

namespace gpurota::daemon {

void FillerMoves::evict(const GpuUuid& gpu) {
  FillerSpot& spot = table_.spots[gpu];
  FillerEntry& entry = table_.entries.at(*spot.filler);
  filler::Eviction::Rules rules;
  rules.drain = entry.wishes.grace;
  spot.eviction.emplace(rules, table_.parts.loop.now());
  table_.supervisor.settle(entry);
  table_.parts.turns.set_aside(*spot.lease, true);
  check_evictions();
}

// Checks later, as the function that made the change has not returned yet.
void FillerMoves::check_evictions() {
  if (check_posted_) return;
  bool any = false;
  for (const auto& [gpu, spot] : table_.spots) any |= spot.eviction.has_value();
  if (!any) return;
  check_posted_ = true;
  table_.parts.loop.post([this] {
    check_posted_ = false;
    for (auto& [gpu, spot] : table_.spots) step_eviction(gpu);
  });
}

filler::Eviction::Sight FillerMoves::eviction_sight(const GpuUuid& gpu) const {
  const FillerSpot& spot = table_.spots.at(gpu);
  filler::Eviction::Sight sight;
  const sched::Turns& turns = table_.parts.turns.turns();
  const TimePoint now = table_.parts.loop.now();
  const auto view = turns.explain(*spot.lease, now);
  const sched::Holding held = table_.parts.turns.holding(*spot.lease, gpu);
  sight.on_hold = turns.on_hold(now);
  sight.silent = view && view->process.value != 0;
  sight.drained = !view || view->phase == sched::Phase::kApart;
  sight.left = held.resident + held.coming;
  sight.stays = held.wired + held.beside + held.lingering;
  sight.counted = spot.counted;
  if (const GpuEntry* const entry = table_.parts.gpus.find(gpu)) sight.taken = entry->taken;
  return sight;
}

void FillerMoves::step_eviction(const GpuUuid& gpu) {
  FillerSpot& spot = table_.spots[gpu];
  if (spot.moved_out) spot.stays = spot.counted.value_or(spot.stays);
  if (!spot.eviction) return;
  // The filler or its lease has ended meanwhile: nothing is left to be moved.
  if (!table_.swap_lease_of(spot)) return;
  switch (spot.eviction->observe(eviction_sight(gpu), table_.parts.loop.now())) {
    case filler::Eviction::Step::kOut:
      return finish_eviction(gpu);
    case filler::Eviction::Step::kFailed: {
      const std::string problem = spot.eviction->problem();
      return fillers_.leave(gpu, "it is ended instead of moved to host memory, because " + problem);
    }
    case filler::Eviction::Step::kGoing:
      break;
  }
  if (spot.eviction->wants_sample()) table_.parts.samples.sample_soon(gpu);
  spot.check_timer = table_.parts.loop.add_timer(spot.eviction->next(), ports::Urgency::kSafety,
                                                 [this, gpu] { step_eviction(gpu); });
}

void FillerMoves::finish_eviction(const GpuUuid& gpu) {
  FillerSpot& spot = table_.spots[gpu];
  spot.stays = spot.eviction->stays();
  spot.eviction.reset();
  spot.moved_out = true;
  // The reason of the move does not tell whether the filler is paused: its owner may have paused it
  // since, or before this daemon started.
  if (!table_.entries.at(*spot.filler).paused) spot.stop_stay(table_.parts.loop.now());
  spot.turns.on_moved_out(table_.parts.loop.now());
  // Reset `check_timer` later, as its callback may be running.
  table_.parts.loop.post([this, gpu] { table_.spots[gpu].check_timer.reset(); });
  table_.parts.samples.poll_processes(gpu, Duration(0));
  log::info(
      "a filler has been moved to host memory",
      {{"gpu", gpu.value}, {"index", table_.gpu_name(gpu)}, {"stays", to_string(spot.stays)}});
  table_.parts.queue.poke();
}

void FillerMoves::bring_back(const GpuUuid& gpu) {
  FillerSpot& spot = table_.spots[gpu];
  const auto it = spot.filler ? table_.entries.find(*spot.filler) : table_.entries.end();
  if (it == table_.entries.end() || !spot.moved_out || spot.told_to_end ||
      !table_.swap_lease_of(spot))
    return;
  FillerEntry& entry = it->second;
  const TimePoint now = table_.parts.loop.now();
  const Duration idle = spot.turns.idle_for(now);
  if (entry.paused || entry.removed || idle < entry.wishes.idle_after) return;
  if (!table_.parts.turns.turns().could_come_back(*spot.lease)) return;
  spot.moved_out = false;
  spot.since = now;
  if (!spot.stays_from) spot.stays_from = now;
  table_.supervisor.settle(entry);
  spot.turns.on_started(now);
  table_.parts.samples.poll_processes(gpu, filler::kSampleEvery);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle).count();
  table_.record(
      proto::EventType::kFillerResumed, entry, gpu,
      fmt::format("continues on {}: nobody has used it for {} s", table_.gpu_name(gpu), seconds));
  table_.parts.turns.set_aside(*spot.lease, false);
}

std::optional<LeaseStay> FillerMoves::stay_of(LeaseId lease) const {
  for (const auto& [gpu, spot] : table_.spots) {
    if (spot.lease != lease || spot.told_to_end || !table_.swap_lease_of(spot)) continue;
    if (spot.moved_out) return LeaseStay{spot.stays, true};
    if (!spot.eviction && table_.way_out_of(gpu).how != filler::OnYield::kEvict)
      return std::nullopt;
    const sched::Holding held = table_.parts.turns.holding(lease, gpu);
    return LeaseStay{held.wired + held.wired_unbacked + held.beside + held.lingering, false};
  }
  return std::nullopt;
}

bool FillerMoves::expects_sample(const GpuUuid& gpu) const {
  const auto spot = table_.spots.find(gpu);
  return spot != table_.spots.end() && spot->second.eviction &&
         spot->second.eviction->wants_sample();
}

}  // namespace gpurota::daemon
