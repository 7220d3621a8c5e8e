// What users do with fillers, and what a daemon does with those that the last one left: the other half
// of fillers.cpp.
#include "base/log.h"
#include "base/text.h"
#include "daemon/supervised/fillers.h"
#include "jobs/log_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::daemon {

Result<void> Fillers::check_new(uid_t uid, const jobs::JobSpec& spec) const {
  GPUROTA_TRY(supervisor_.check_owner(uid));
  GPUROTA_TRY(jobs::check_spec(spec));
  std::size_t count = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry.uid != uid) continue;
    ++count;
    if (entry.spec.name != spec.name) continue;
    return fail(Code::kInvalid,
                entry.removed
                    ? fmt::format("{} is just being removed: try again", spec.name)
                    : fmt::format("there is a filler {0} already: 'gpurota filler remove {0}' "
                                  "removes it",
                                  spec.name));
  }
  if (count >= kMostFillers) {
    return fail(
        Code::kLimit,
        fmt::format("you have {} fillers already, which is the most a user can have", count));
  }
  return check_log(uid);
}

Result<void> Fillers::check_log(uid_t uid) const {
  return supervisor_.check_logs(uid, 0, jobs::kLogBound.count());
}

void Fillers::count_logs(FillerEntry& entry) {
  supervisor_.count_logs(entry, std::max<std::size_t>(1, entry.places.size()));
}

Result<const FillerEntry*> Fillers::add(uid_t uid, jobs::JobSpec spec, FillerWishes wishes) {
  GPUROTA_TRY(check_new(uid, spec));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, supervisor_.next_id());
  FillerEntry entry;
  entry.id = id;
  entry.uid = uid;
  entry.user = parts_.processes.user_name(uid);
  entry.spec = std::move(spec);
  entry.wishes = std::move(wishes);
  GPUROTA_TRY(save(entry));
  const auto [it, added] = entries_.emplace(id, std::move(entry));
  count_logs(it->second);
  log::info("filler added", {{"name", it->second.spec.name}, {"uid", uid}});
  for (const GpuEntry& gpu : parts_.gpus.entries()) parts_.samples.look_soon(gpu.info.uuid);
  return &it->second;
}

Result<void> Fillers::control(std::uint64_t id, What what) {
  FillerEntry& entry = entries_.at(id);
  const bool leaves = what != What::kResume;
  const bool removed = what == What::kRemove;
  if (removed) {
    entry.removed = true;
  } else {
    entry.paused = leaves;
  }
  if (what == What::kResume) {
    entry.failures = 0;
    entry.problem.clear();
    entry.retry_at.reset();
  }
  const std::string name = entry.spec.name;
  // It is gone then, if it is removed and was nowhere.
  supervisor_.settle(entry);
  for (auto& [gpu, spot] : spots_) {
    if (spot.filler != id) continue;
    if (!leaves) {
      if (spot.moved_out) spot.stop_stay(parts_.loop.now());
      continue;
    }
    const auto why = removed ? filler::Why::kRemoved : filler::Why::kPaused;
    const char* const reason = removed ? "it is being removed" : "it is paused";
    // A GPU that it keeps from others while it is paused it has.
    if (spot.moved_out && !spot.stays_from) spot.stays_from = parts_.loop.now();
    if (spot.turns.dismiss(why)) {
      yield(gpu, reason);
    } else if (removed && (spot.moved_out || spot.eviction)) {
      leave(gpu, reason);
    }
  }
  for (const GpuEntry& gpu : parts_.gpus.entries()) parts_.samples.look_soon(gpu.info.uuid);
  return supervisor_.check_stored(id, name);
}

Result<std::string> Fillers::read_log(std::uint64_t id, std::size_t most) const {
  const FillerEntry& entry = entries_.at(id);
  std::string text;
  for (std::size_t i = 0; i < entry.places.size(); ++i) {
    GPUROTA_ASSIGN_OR_RETURN(
        const jobs::LogPart part,
        supervisor_.files().read_log(run_at(entry, i), std::nullopt, most / entry.places.size()));
    if (entry.places.size() > 1) text += fmt::format("==> {} <==\n", gpu_name(entry.places[i]));
    text += part.text;
  }
  return text;
}

Result<void> Fillers::save(const FillerEntry& entry) const {
  ports::StoredFiller row;
  row.id = entry.id;
  row.uid = entry.uid;
  row.user = entry.user;
  row.spec = encode(entry.spec);
  row.gpus = entry.wishes.gpus;
  row.instances = entry.wishes.instances;
  row.memory = entry.wishes.memory;
  row.of_free = entry.wishes.of_free;
  row.idle_after = entry.wishes.idle_after;
  row.grace = entry.wishes.grace;
  row.state = entry.removed ? "removed" : entry.paused ? "paused" : "active";
  row.places = entry.places;
  row.evicts = entry.wishes.on_yield == filler::OnYield::kEvict;
  for (const auto& [gpu, spot] : spots_) {
    if (spot.filler == entry.id && (spot.moved_out || spot.eviction)) row.out.push_back(gpu);
  }
  return supervisor_.store()->save_filler(row);
}

Result<void> Fillers::restore() {
  if (supervisor_.store() == nullptr) return {};
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredFiller> fillers,
                           supervisor_.store()->load_fillers());
  std::set<std::uint64_t> known;
  for (const ports::StoredFiller& stored : fillers) known.insert(stored.id);
  supervisor_.files().remove_leftovers(
      [&known](std::uint64_t run) { return known.contains(run / kMostPlaces); });
  for (const ports::StoredFiller& stored : fillers) GPUROTA_TRY(take_up(stored));
  return {};
}

Result<void> Fillers::take_up(const ports::StoredFiller& stored) {
  auto spec = jobs::decode_spec(stored.spec);
  if (!spec) {
    log::error("a stored filler cannot be read, ignoring it", {{"id", stored.id}});
    return {};
  }
  FillerEntry entry;
  entry.id = stored.id;
  entry.uid = stored.uid;
  entry.user = stored.user;
  entry.spec = std::move(*spec);
  entry.wishes = {.gpus = stored.gpus,
                  .instances = stored.instances,
                  .memory = stored.memory,
                  .of_free = stored.of_free,
                  .idle_after = stored.idle_after,
                  .grace = stored.grace};
  if (stored.evicts) entry.wishes.on_yield = filler::OnYield::kEvict;
  entry.paused = stored.state == "paused";
  entry.removed = stored.state == "removed";
  entry.places = stored.places;
  const auto [it, added] = entries_.emplace(stored.id, std::move(entry));
  count_logs(it->second);
  GPUROTA_TRY(find_running(it->second, stored.out));
  if (it->second.removed) supervisor_.settle(it->second);
  return {};
}

Result<void> Fillers::find_running(FillerEntry& entry, const std::vector<GpuUuid>& out) {
  for (std::size_t i = 0; i < entry.places.size(); ++i) {
    const GpuUuid gpu = entry.places[i];
    GPUROTA_ASSIGN_OR_RETURN(const bool on, supervisor_.take_up(run_at(entry, i)));
    if (!on) continue;
    FillerSpot& spot = spots_[gpu];
    spot.filler = entry.id;
    spot.run = run_at(entry, i);
    spot.since = entry.last_start = parts_.loop.now();
    spot.stays_from = spot.since;
    spot.may_lack_lease = true;
    spot.turns.on_found(parts_.loop.now());
    parts_.samples.glimpse(gpu, filler::kSampleEvery);
    log::info("filler restored", {{"name", entry.spec.name}, {"gpu", gpu.value}});
    take_up_lease(entry, gpu, std::find(out.begin(), out.end(), gpu) != out.end());
  }
  return {};
}

void Fillers::take_up_lease(FillerEntry& entry, const GpuUuid& gpu, bool was_out) {
  FillerSpot& spot = spots_[gpu];
  bool ending = false;
  for (const auto& [id, lease] : parts_.leases.entries()) {
    if (lease.lease.kind != LeaseKind::kFiller || !lease.lease.find_gpu(gpu)) continue;
    if (!is_kept_by(lease, spot)) continue;
    spot.lease = id;
    spot.may_lack_lease = false;
    ending = lease.cause.has_value();
  }
  const bool stays_out = was_out && !ending && swap_lease_of(spot);
  filler::Sight wanted;
  wanted.wanted = ending || stays_out;
  if (wanted.wanted) (void)spot.turns.look(wanted, parts_.loop.now());
  spot.told_to_end = ending;
  // Out, or on its way there: it is seen to once more.
  if (stays_out) evict(gpu);
  if (!entry.paused && !entry.removed) return;
  const auto why = entry.removed ? filler::Why::kRemoved : filler::Why::kPaused;
  const bool leaves = spot.turns.dismiss(why) || (stays_out && entry.removed);
  if (leaves) yield(gpu, "it was leaving when the daemon stopped");
}

}  // namespace gpurota::daemon
