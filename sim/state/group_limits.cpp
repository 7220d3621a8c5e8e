// Memory limits by control group, as drivers have them since version 615. All that a process
// allocates is charged to the group that it is in then, and to the groups above it.
#include "sim/state/control_groups.h"
#include "sim/state/machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace gpurota::sim {
namespace {

constexpr int kFirstDriver = 615;

bool is_unlimited(const GroupLimit& limit) { return limit.soft == 0 && limit.hard == UINT64_MAX; }

}  // namespace

bool Machine::limits_groups() const {
  return std::strtol(state_->driver_version, nullptr, 10) >= kFirstDriver;
}

bool Machine::has_group_limits() const {
  return std::any_of(std::begin(state_->group_limit), std::end(state_->group_limit),
                     [](const GroupLimit& limit) { return limit.group[0] != '\0'; });
}

void Machine::note_group() {
  char(&group)[kMaxGroupPath] = state_->process[slot_].group;
  const std::string own = limits_groups() ? own_group(dir_) : "";
  std::memset(group, 0, sizeof group);
  if (own.size() < sizeof group) std::memcpy(group, own.data(), own.size());
}

void Machine::drop_ended_groups() {
  for (GroupLimit& limit : state_->group_limit) {
    if (limit.group[0] != '\0' && !is_group(limit.group)) limit.group[0] = '\0';
  }
}

std::uint64_t Machine::used_in(int device, const std::string& group) const {
  std::uint64_t sum = 0;
  for (int i = 0; i < state_->process_end; ++i) {
    const ProcessSlot& slot = state_->process[i];
    if (slot.state.load() == kSlotFree || !is_in_group(slot.group, group)) continue;
    sum += slot.use[device].bytes.load() + shared_bytes(device, i);
  }
  return sum;
}

GroupLimits Machine::smallest_group_limit(int device, const std::string& group) const {
  GroupLimits smallest;
  for (const GroupLimit& limit : state_->group_limit) {
    if (limit.device != device || !is_in_group(group, limit.group)) continue;
    const GroupLimits found{limit.soft, limit.hard, used_in(device, limit.group)};
    if (found.room() < smallest.room()) smallest = found;
  }
  return smallest;
}

bool Machine::set_group_limits(int device, const std::string& group, std::uint64_t soft,
                               std::uint64_t hard) {
  const MachineLock lock(*state_);
  drop_ended_groups();
  GroupLimit* place = nullptr;
  for (GroupLimit& limit : state_->group_limit) {
    if (limit.group == group && limit.device == device) {
      place = &limit;
      break;
    }
    if (place == nullptr && limit.group[0] == '\0') place = &limit;
  }
  if (place == nullptr || group.size() >= sizeof place->group) return false;
  place->device = device;
  place->soft = soft;
  place->hard = hard;
  std::memset(place->group, 0, sizeof place->group);
  if (!is_unlimited(*place)) std::memcpy(place->group, group.data(), group.size());
  return true;
}

GroupLimits Machine::group_limits(int device, const std::string& group) {
  const MachineLock lock(*state_);
  drop_ended_groups();
  reap();
  GroupLimits found{0, UINT64_MAX, used_in(device, group)};
  for (const GroupLimit& limit : state_->group_limit) {
    if (limit.group != group || limit.device != device) continue;
    found.soft = limit.soft;
    found.hard = limit.hard;
  }
  return found;
}

DeviceTotals Machine::totals_here(int device) {
  DeviceTotals seen = totals(device);
  if (!limits_groups()) return seen;
  const MachineLock lock(*state_);
  const std::string own = joined() ? state_->process[slot_].group : own_group(dir_);
  const GroupLimits limit = smallest_group_limit(device, own);
  if (limit.hard >= seen.total) return seen;
  const std::uint64_t free = std::min(limit.room(), seen.total - std::min(seen.total, seen.used));
  seen.total = limit.hard;
  seen.used = limit.hard - free;
  return seen;
}

}  // namespace gpurota::sim
