#include "daemon/history/usage_book.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

std::optional<double> part_of(const LeaseGpu& share, const std::vector<GpuInfo>& gpus) {
  if (!share.limit) return 1;
  for (const GpuInfo& gpu : gpus) {
    if (gpu.uuid != share.uuid || gpu.memory.is_zero()) continue;
    return std::min(
        1.0, static_cast<double>(share.limit->count()) / static_cast<double>(gpu.memory.count()));
  }
  return std::nullopt;
}

// Converts a time of the wall clock, which an earlier daemon may have read, to the loop's clock.
TimePoint since(WallTime then, Now now) {
  return now.mono - std::max<Duration>(Duration(0), now.wall - then);
}

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

void UsageBook::count(Entry& entry, Now now) {
  if (!entry.part) return;
  const double passed = std::max(0.0, milliseconds(now.mono - entry.at));
  entry.at = now.mono;
  entry.gpu_ms += passed * *entry.part;
  entry.mib_ms += passed * static_cast<double>(entry.used.count()) / (1 << 20);
  if (entry.load) entry.busy_ms += passed * *entry.load / 100;
  if (entry.load == 0) entry.idle_ms += passed * *entry.part;
  entry.usage.gpu_ms = static_cast<std::uint64_t>(entry.gpu_ms);
  entry.usage.mib_ms = static_cast<std::uint64_t>(entry.mib_ms);
  entry.usage.busy_ms = static_cast<std::uint64_t>(entry.busy_ms);
  entry.usage.idle_ms = static_cast<std::uint64_t>(entry.idle_ms);
  // If the clock was set back, the usage still ends where it ended before.
  entry.usage.until = std::max(entry.usage.until, now.wall);
}

void UsageBook::update(const Lease& lease, const std::string& group,
                       const std::vector<GpuInfo>& gpus, Now now) {
  for (const LeaseGpu& share : lease.gpus) {
    const auto [at, made] = entries_.try_emplace({lease.id, share.uuid});
    Entry& entry = at->second;
    if (made) {
      entry.at = since(lease.since, now);
      entry.usage.lease = lease.id;
      entry.usage.gpu = share.uuid;
      entry.usage.uid = lease.uid;
      entry.usage.kind = to_string(lease.kind);
      entry.usage.since = entry.usage.until = std::min(lease.since, now.wall);
      entry.usage.open = true;
    }
    const auto part = part_of(share, gpus);
    if (!entry.part) entry.part = part;
    count(entry, now);
    entry.part = part;
    if (entry.usage.group.empty()) entry.usage.group = group;  // the group may become known later
    entry.usage.note = lease.note;
  }
}

void UsageBook::resume(const ports::StoredUsage& usage, const Lease& lease,
                       const std::vector<GpuInfo>& gpus, Now now) {
  const LeaseGpu* const share = lease.find_gpu(usage.gpu);
  if (!share) return;
  Entry& entry = entries_[{usage.lease, usage.gpu}];
  entry.usage = usage;
  entry.part = part_of(*share, gpus);
  entry.at = since(usage.until, now);
  entry.gpu_ms = static_cast<double>(usage.gpu_ms);
  entry.mib_ms = static_cast<double>(usage.mib_ms);
  entry.busy_ms = static_cast<double>(usage.busy_ms);
  entry.idle_ms = static_cast<double>(usage.idle_ms);
  count(entry, now);
}

void UsageBook::on_use(LeaseId lease, const GpuUuid& gpu, Bytes used, Now now) {
  const auto at = entries_.find({lease, gpu});
  if (at == entries_.end()) return;
  count(at->second, now);
  at->second.used = used;
}

void UsageBook::on_loads(const GpuUuid& gpu, const std::optional<std::map<LeaseId, int>>& loads,
                         Now now) {
  for (auto& [key, entry] : entries_) {
    if (key.second != gpu) continue;
    count(entry, now);
    entry.load.reset();
    if (!loads) continue;
    if (const auto at = loads->find(key.first); at != loads->end()) entry.load = at->second;
  }
}

void UsageBook::close(LeaseId lease, Now now) {
  for (auto it = entries_.lower_bound({lease, GpuUuid{}});
       it != entries_.end() && it->first.first == lease;) {
    count(it->second, now);
    it->second.usage.open = false;
    closed_.push_back(std::move(it->second.usage));
    it = entries_.erase(it);
  }
}

std::vector<ports::StoredUsage> UsageBook::take(Now now) {
  std::vector<ports::StoredUsage> all = std::move(closed_);
  closed_.clear();
  for (ports::StoredUsage& each : open(now)) all.push_back(std::move(each));
  return all;
}

std::vector<ports::StoredUsage> UsageBook::open(Now now) {
  std::vector<ports::StoredUsage> all;
  for (auto& [key, entry] : entries_) {
    count(entry, now);
    all.push_back(entry.usage);
  }
  return all;
}

}  // namespace gpurota::daemon
