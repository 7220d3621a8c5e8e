#include "daemon/leases/aside_leases.h"

#include "base/text.h"

#include <fmt/format.h>

#include <utility>

namespace gpurota::daemon {
namespace {

// The swap leases of a GPU that do not fit beside the slices there. Whole GPUs have no slices.
std::vector<LeaseId> too_large_beside_slices(const GpuUuid& uuid, const AsideLeases::Parts& parts) {
  const GpuEntry* const gpu = parts.gpus.find(uuid);
  if (!gpu) return {};
  Bytes slices;
  std::vector<std::pair<LeaseId, Bytes>> swap_leases;
  for (const auto& [id, entry] : parts.tables.leases) {
    const LeaseGpu* const share = entry.lease.find_gpu(uuid);
    if (!share || !share->limit || entry.lease.kind == LeaseKind::kFiller) continue;
    if (share->swap) {
      swap_leases.emplace_back(id, *share->limit);
    } else if (!is_off(entry.lease.park)) {
      slices += *share->limit;
    }
  }
  const Bytes capacity = parts.rooms.turn_capacity(*gpu);
  std::vector<LeaseId> leases;
  for (const auto& [id, limit] : swap_leases) {
    if (slices + limit > capacity) leases.push_back(id);
  }
  return leases;
}

}  // namespace

std::map<LeaseId, std::string> AsideLeases::wanted() {
  std::map<LeaseId, std::string> wanted;
  causes_.clear();
  for (const BookingEntry& entry : parts_.tables.bookings) {
    for (const auto& [lease, since] : entry.aside) {
      wanted.emplace(lease,
                     fmt::format("{} begins to use booking {}",
                                 display_text(parts_.processes.user_name(entry.asked.uid), 32),
                                 to_string(entry.id)));
    }
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (!entry.booking) continue;
    for (const LeaseGpu& slice : entry.lease.gpus) {
      for (const LeaseId lease : too_large_beside_slices(slice.uuid, parts_)) {
        causes_.insert(id);
        wanted.emplace(lease,
                       fmt::format("booking {} of {} lasts", to_string(*entry.booking),
                                   display_text(parts_.processes.user_name(entry.lease.uid), 32)));
      }
    }
  }
  return wanted;
}

std::vector<LeaseId> AsideLeases::find_idle(TimePoint now, Duration longest) {
  std::map<LeaseId, TimePoint> idle_since;
  std::vector<LeaseId> idle;
  for (const LeaseId id : causes_) {
    if (!parts_.tables.find(id) || parts_.leases.is_in_use(id)) continue;
    const auto before = idle_since_.find(id);
    const TimePoint since = before == idle_since_.end() ? now : before->second;
    idle_since.emplace(id, since);
    if (now - since >= longest) idle.push_back(id);
  }
  idle_since_ = std::move(idle_since);
  return idle;
}

void AsideLeases::update() {
  const auto now = wanted();
  std::set<LeaseId> before = std::move(leases_);
  leases_.clear();
  for (const auto& [lease, why] : now) {
    if (!parts_.tables.find(lease)) continue;
    leases_.insert(lease);
    if (before.erase(lease) == 0) {
      parts_.set_aside(lease, true,
                       fmt::format("{} is moved to host memory: {}", to_string(lease), why));
    }
  }
  for (const LeaseId lease : before) {
    if (!parts_.tables.find(lease)) continue;
    parts_.set_aside(lease, false, fmt::format("{} takes turns again", to_string(lease)));
  }
}

}  // namespace gpurota::daemon
