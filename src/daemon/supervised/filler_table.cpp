#include "daemon/supervised/filler_table.h"

#include "base/log.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {

std::optional<SizeSpec> FillerWishes::memory_of(const lease::Available& available) const {
  if (!of_free) return memory;
  const Bytes free = on_yield == filler::OnYield::kEvict ? available.turns : available.slice;
  // If nothing is free, the filler asks for the least amount, so that the refusal gives the reason.
  return SizeSpec{std::max(SizeSpec{Bytes(), *of_free}.of(free), kMiB), 0};
}

bool FillerWishes::may_use(const GpuUuid& gpu) const {
  return gpus.empty() || std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

FillerTable::FillerTable(FillerParts given, Supervisor::Policy& policy)
    : parts(std::move(given)),
      supervisor(parts.supervisor, ports::ProgramKind::kFiller, parts.directory, policy) {}

WallTime FillerTable::wall_time(TimePoint when) const {
  return parts.wall_clock() +
         std::chrono::duration_cast<std::chrono::milliseconds>(when - parts.loop.now());
}

std::string FillerTable::gpu_name(const GpuUuid& gpu) const {
  return parts.gpus.find(gpu) ? "GPU " + parts.gpus.name_of(gpu) : "a GPU";
}

void FillerTable::record(proto::EventType type, const FillerEntry& entry, const GpuUuid& gpu,
                         const std::string& what) {
  const std::string user = display_text(entry.user, 32);
  Recorder::Event event;
  event.type = type;
  event.gpu = gpu;
  event.uid = entry.uid;
  const auto spot = spots.find(gpu);
  if (spot != spots.end()) event.lease = spot->second.lease;
  event.message = fmt::format("a filler of {} {}", user, what);
  event.detail = fmt::format("{}: {}", display_text(entry.spec.name, 64),
                             display_command(entry.spec.command, 200));
  log::info("filler", {{"what", event.message}, {"name", entry.spec.name}, {"uid", entry.uid}});
  parts.recorder.record(std::move(event));
}

Result<void> FillerTable::save(const FillerEntry& entry) const {
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
  row.paused_by = entry.paused_by;
  row.places = entry.places;
  row.evicts = entry.wishes.on_yield == filler::OnYield::kEvict;
  for (const auto& [gpu, spot] : spots) {
    if (spot.filler == entry.id && (spot.moved_out || spot.eviction)) row.out.push_back(gpu);
  }
  return supervisor.store()->save_filler(row);
}

std::uint64_t FillerTable::run_at(const FillerEntry& entry, std::size_t place) {
  return entry.id * kMostPlaces + place;
}

const GpuUuid& FillerTable::gpu_of(std::uint64_t run) const {
  return entries.at(run / kMostPlaces).places.at(run % kMostPlaces);
}

bool FillerTable::is_on(const FillerEntry& entry) const {
  for (std::size_t i = 0; i < entry.places.size(); ++i) {
    const auto spot = spots.find(entry.places[i]);
    if (supervisor.is_on(run_at(entry, i))) return true;
    if (spot != spots.end() && spot->second.filler == entry.id) return true;
  }
  return false;
}

bool FillerTable::is_kept_by(const LeaseEntry& lease, const FillerSpot& spot) const {
  if (!spot.filler || !lease.holder) return false;
  const auto info = parts.processes.read_info(lease.holder->pid());
  return info && supervisor.is_kept_by(spot.run, info->parent);
}

const LeaseEntry* FillerTable::swap_lease_of(const FillerSpot& spot) const {
  const LeaseEntry* const lease = spot.lease ? parts.tables.find(*spot.lease) : nullptr;
  return lease && lease->lease.swap() && !lease->cause ? lease : nullptr;
}

filler::WayOut FillerTable::way_out_of(const GpuUuid& gpu) const {
  const FillerSpot& spot = spots.at(gpu);
  const auto it = spot.filler ? entries.find(*spot.filler) : entries.end();
  filler::Yielding yielding;
  if (it != entries.end()) yielding.wish = it->second.wishes.on_yield;
  yielding.why = spot.turns.why();
  // True also for a lease that the queue has just ended, because a request needs the whole GPU or
  // there is no room beside the filler.
  yielding.can_be_moved = spot.lease.has_value();
  yielding.host_has_room = spot.lease && parts.turns.turns().could_be_aside(*spot.lease);
  return filler::way_out(yielding);
}

void FillerTable::count_logs(FillerEntry& entry) {
  const std::size_t logs = std::max<std::size_t>(1, entry.places.size());
  supervisor.count_logs(entry, Bytes(logs * jobs::kLogBound.count()));
}

}  // namespace gpurota::daemon
