#include "daemon/watch/stored_ages.h"

#include <algorithm>

namespace gpurota::daemon {

void StoredAges::restore(watch::Watcher& watcher, TimePoint now) {
  const std::string boot = parts_.processes.boot_id();
  Ages all;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    for (const ports::StoredAge& row : parts_.states.of(gpu.info.uuid).ages) {
      const auto kind = watch::parse_finding_kind(row.finding);
      // A reboot ends the processes of a finding, but not always the lease of an unused GPU.
      if (!kind || (*kind != watch::FindingKind::kUnused && row.boot_id != boot)) continue;
      watch::Age age{*kind, gpu.info.uuid, row.uid, row.lease};
      // If the clock was set back, `row.since` may be in the future: the age begins now instead.
      age.since = now - std::max<Duration>(parts_.wall_clock() - row.since, Duration(0));
      if (row.process) age.process = {row.process->pid, row.process->start_ticks};
      stored_[gpu.info.uuid].push_back(age);
      all.push_back(age);
    }
  }
  watcher.restore(std::move(all), now);
}

std::vector<ports::StoredAge> StoredAges::rows(const Ages& ages, TimePoint now) const {
  std::vector<ports::StoredAge> rows;
  for (const watch::Age& age : ages) {
    ports::StoredAge& row = rows.emplace_back();
    row.finding = watch::to_string(age.kind);
    row.uid = age.uid;
    row.lease = age.lease;
    row.since = parts_.wall_clock() -
                std::chrono::duration_cast<std::chrono::milliseconds>(now - age.since);
    if (age.process.second != 0) {
      row.process = ports::ProcessId{age.process.first, age.process.second};
    }
    row.boot_id = parts_.processes.boot_id();
  }
  return rows;
}

void StoredAges::store(const watch::Watcher& watcher, TimePoint now) {
  std::map<GpuUuid, Ages> by_gpu;
  for (const watch::Age& age : watcher.ages(now)) by_gpu[age.gpu].push_back(age);
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    const Ages& ages = by_gpu[gpu.info.uuid];
    Ages& stored = stored_[gpu.info.uuid];
    if (ages == stored) continue;
    parts_.states.set_ages(gpu.info.uuid, rows(ages, now));
    stored = ages;
  }
}

}  // namespace gpurota::daemon
