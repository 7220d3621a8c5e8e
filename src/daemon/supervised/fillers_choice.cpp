// Which filler goes on a GPU, and which makes way for another: part of fillers.cpp. Decided in filler/choice.h.
#include "base/log.h"
#include "daemon/supervised/fillers.h"
#include "jobs/supervision.h"

#include <fmt/format.h>

namespace gpurota::daemon {

Fillers::Candidates Fillers::candidates() const {
  Candidates all;
  for (const auto& [id, entry] : entries_) {
    filler::Candidate candidate;
    candidate.name = entry.spec.name;
    candidate.gpus = entry.wishes.gpus;
    candidate.instances = entry.wishes.instances;
    candidate.may_start = !entry.paused && !entry.removed &&
                          (!entry.retry_at || parts_.loop.now() >= *entry.retry_at);
    candidate.idle_after = entry.wishes.idle_after;
    candidate.user = entry.uid;
    candidate.last_start = entry.last_start;
    for (const auto& [gpu, spot] : spots_) candidate.running += spot.filler == id ? 1 : 0;
    all.list.push_back(std::move(candidate));
    all.ids.push_back(id);
  }
  return all;
}

bool Fillers::stay_is_over(const GpuUuid& gpu) const {
  const Duration longest = parts_.config.filler.longest_stay;
  const FillerSpot& spot = spots_.at(gpu);
  const bool there = spot.turns.state() == filler::State::kOn || spot.moved_out;
  if (longest == Duration(0) || !spot.filler || !there || spot.told_to_end) return false;
  const TimePoint now = parts_.loop.now();
  const Duration now_there = spot.stays_from ? now - *spot.stays_from : Duration(0);
  if (spot.stayed + now_there < longest) return false;
  Candidates all = candidates();
  std::optional<std::size_t> current;
  for (std::size_t i = 0; i < all.ids.size(); ++i) {
    const FillerEntry& entry = entries_.at(all.ids[i]);
    if (all.ids[i] == *spot.filler) {
      current = i;
      all.list[i].may_start = !entry.paused;
    } else if (!entry.problem.empty() &&
               now - entry.failed_at < filler::passed_over_for(entry.failures, longest)) {
      // Nobody is ended for one whose last run failed just now.
      all.list[i].may_start = false;
    }
  }
  return current &&
         filler::makes_way(std::move(all.list), *current, {gpu, spot.turns.idle_for(now)});
}

void Fillers::start_one(const GpuUuid& gpu) {
  const TimePoint now = parts_.loop.now();
  FillerSpot& spot = spots_[gpu];
  const Candidates waiting = candidates();
  const Duration idle = spot.turns.idle_for(now);
  const auto chosen = filler::choose(waiting.list, {{gpu, idle}});
  if (chosen.empty()) return;
  FillerEntry& entry = entries_.at(waiting.ids[chosen.front().candidate]);
  if (auto launched = launch(entry, gpu); !launched) {
    entry.problem = launched.error().message;
    entry.failed_at = now;
    entry.retry_at = now + jobs::back_off(++entry.failures);
    log::warn("a filler cannot be started",
              {{"name", entry.spec.name}, {"error", launched.error().message}});
    return;
  }
  spot.turns.on_started(now);
  parts_.samples.glimpse(gpu, filler::kSampleEvery);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle).count();
  record(proto::EventType::kFillerStarted, entry, gpu,
         fmt::format("starts on {}: nobody has used it for {} s", gpu_name(gpu), seconds));
}

}  // namespace gpurota::daemon
