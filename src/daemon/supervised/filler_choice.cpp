#include "daemon/supervised/filler_choice.h"

namespace gpurota::daemon {

FillerChoice::Candidates FillerChoice::candidates() const {
  Candidates all;
  for (const auto& [id, entry] : table_.entries) {
    filler::Candidate candidate;
    candidate.name = entry.spec.name;
    candidate.gpus = entry.wishes.gpus;
    candidate.instances = entry.wishes.instances;
    candidate.may_start = !entry.paused && !entry.removed &&
                          (!entry.retry_at || table_.parts.loop.now() >= *entry.retry_at);
    candidate.idle_after = entry.wishes.idle_after;
    candidate.user = entry.uid;
    candidate.last_start = entry.last_start;
    for (const auto& [gpu, spot] : table_.spots) candidate.running += spot.filler == id ? 1 : 0;
    all.list.push_back(std::move(candidate));
    all.ids.push_back(id);
  }
  return all;
}

bool FillerChoice::stay_is_over(const GpuUuid& gpu) const {
  const Duration longest = table_.parts.config.filler.longest_stay;
  const FillerSpot& spot = table_.spots.at(gpu);
  const bool there = spot.turns.state() == filler::State::kOn || spot.moved_out;
  if (longest == Duration(0) || !spot.filler || !there || spot.told_to_end) return false;
  const TimePoint now = table_.parts.loop.now();
  const Duration now_there = spot.stays_from ? now - *spot.stays_from : Duration(0);
  if (spot.stayed + now_there < longest) return false;
  Candidates all = candidates();
  std::optional<std::size_t> current;
  for (std::size_t i = 0; i < all.ids.size(); ++i) {
    const FillerEntry& entry = table_.entries.at(all.ids[i]);
    if (all.ids[i] == *spot.filler) {
      current = i;
      all.list[i].may_start = !entry.paused;
    } else if (!entry.problem.empty() &&
               now - entry.failed_at < filler::passed_over_for(entry.failures, longest)) {
      // Do not end a filler for another filler whose last run has just failed.
      all.list[i].may_start = false;
    }
  }
  return current &&
         filler::makes_way(std::move(all.list), *current, {gpu, spot.turns.idle_for(now)});
}

FillerEntry* FillerChoice::next_for(const GpuUuid& gpu) const {
  const Candidates waiting = candidates();
  const Duration idle = table_.spots.at(gpu).turns.idle_for(table_.parts.loop.now());
  const auto chosen = filler::choose(waiting.list, {{gpu, idle}});
  return chosen.empty() ? nullptr : &table_.entries.at(waiting.ids[chosen.front().candidate]);
}

filler::Rules FillerChoice::rules_for(const GpuUuid& gpu) const {
  filler::Rules rules;
  rules.load_percent = table_.parts.config.filler.load_percent;
  std::optional<Duration> least;
  for (const auto& [id, entry] : table_.entries) {
    if (entry.removed || entry.paused || !entry.wishes.may_use(gpu)) continue;
    if (!least || entry.wishes.idle_after < *least) least = entry.wishes.idle_after;
  }
  if (least) rules.idle_after = *least;
  return rules;
}

}  // namespace gpurota::daemon
