#include "daemon/supervised/filler_adoption.h"

#include "base/log.h"
#include "daemon/supervised/fillers.h"

#include <algorithm>
#include <set>

namespace gpurota::daemon {

Result<void> FillerAdoption::take_up_all() {
  if (table_.supervisor.store() == nullptr) return {};
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredFiller> fillers,
                           table_.supervisor.store()->load_fillers());
  std::set<std::uint64_t> known;
  for (const ports::StoredFiller& stored : fillers) known.insert(stored.id);
  table_.supervisor.files().remove_leftovers(
      [&known](std::uint64_t run) { return known.contains(run / FillerTable::kMostPlaces); });
  for (const ports::StoredFiller& stored : fillers) GPUROTA_TRY(take_up(stored));
  return {};
}

Result<void> FillerAdoption::take_up(const ports::StoredFiller& stored) {
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
  entry.paused_by = stored.paused_by;
  entry.removed = stored.state == "removed";
  entry.places = stored.places;
  const auto [it, added] = table_.entries.emplace(stored.id, std::move(entry));
  table_.count_logs(it->second);
  GPUROTA_TRY(find_running(it->second, stored.out));
  if (it->second.removed) table_.supervisor.settle(it->second);
  return {};
}

Result<void> FillerAdoption::find_running(FillerEntry& entry, const std::vector<GpuUuid>& out) {
  for (std::size_t i = 0; i < entry.places.size(); ++i) {
    const GpuUuid gpu = entry.places[i];
    GPUROTA_ASSIGN_OR_RETURN(const bool on, table_.supervisor.take_up(table_.run_at(entry, i)));
    if (!on) continue;
    FillerSpot& spot = table_.spots[gpu];
    spot.filler = entry.id;
    spot.run = table_.run_at(entry, i);
    spot.since = entry.last_start = table_.parts.loop.now();
    spot.stays_from = spot.since;
    spot.may_lack_lease = true;
    spot.turns.on_found(table_.parts.loop.now());
    table_.parts.samples.poll_processes(gpu, filler::kSampleEvery);
    log::info("filler restored", {{"name", entry.spec.name}, {"gpu", gpu.value}});
    take_up_lease(entry, gpu, std::find(out.begin(), out.end(), gpu) != out.end());
  }
  return {};
}

void FillerAdoption::take_up_lease(FillerEntry& entry, const GpuUuid& gpu, bool was_out) {
  FillerSpot& spot = table_.spots[gpu];
  bool ending = false;
  for (const auto& [id, lease] : table_.parts.tables.leases) {
    if (lease.lease.kind != LeaseKind::kFiller || !lease.lease.find_gpu(gpu)) continue;
    if (!table_.is_kept_by(lease, spot)) continue;
    spot.lease = id;
    spot.may_lack_lease = false;
    ending = lease.cause.has_value();
  }
  const bool stays_out = was_out && !ending && table_.swap_lease_of(spot);
  filler::Sight wanted;
  wanted.wanted = ending || stays_out;
  if (wanted.wanted) (void)spot.turns.observe(wanted, table_.parts.loop.now());
  spot.told_to_end = ending;
  // The filler was moved out, or was being moved out: the move is checked once more.
  if (stays_out) moves_.evict(gpu);
  if (!entry.paused && !entry.removed) return;
  const auto why = entry.removed ? filler::Why::kRemoved : filler::Why::kPaused;
  const bool leaves = spot.turns.dismiss(why) || (stays_out && entry.removed);
  if (leaves) fillers_.yield(gpu, "it was leaving when the daemon stopped");
}

}  // namespace gpurota::daemon
