// The enforced ends of leases, and reservations whose time is over while memory is still held: part of
// lease_manager.cpp.
//
// A run lease ends at its time limit, and its processes with it. A reservation whose GPUs are idle by
// then ends too. One whose programs still hold memory is *expired*: everybody sees it, it holds what it
// held, and the site's policy decides: `stop` ends its programs at once, `yield` when somebody waits
// for its GPUs, `keep` never. Nobody is promised memory that is not there.
#include "base/log.h"
#include "daemon/leases/lease_manager.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// The wall clock may be set meanwhile, so a far end is looked at again now and then.
constexpr Duration kLongestTimer = std::chrono::minutes(1);

}  // namespace

void LeaseManager::arm_expiry(LeaseEntry& entry) {
  entry.expiry.reset();
  if (!entry.lease.ends || entry.cause || entry.lease.state == LeaseState::kExpired) return;
  const Duration left = *entry.lease.ends - parts_.wall_clock();
  // After a restart nobody can tell yet who uses what.
  const Duration least = std::max(settled_at_ - parts_.loop.now(), Duration(0));
  const Duration wait = std::max(std::clamp(left, Duration(0), kLongestTimer), least);
  auto timer = parts_.loop.add_timer(parts_.loop.now() + wait, ports::Urgency::kSafety,
                                     [this, id = entry.lease.id] { on_expiry(id); });
  if (timer) entry.expiry = std::move(*timer);
}

void LeaseManager::on_expiry(LeaseId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.cause || !it->second.lease.ends) return;
  LeaseEntry& entry = it->second;
  const auto this_timer = std::move(entry.expiry);
  if (parts_.wall_clock() < *entry.lease.ends) return arm_expiry(entry);
  const bool used = !entry.members.list().empty() || !entry.commands.empty() ||
                    !entry.covered.list().empty() || parts_.holds_memory(id);
  const bool lives_on = entry.lease.kind == LeaseKind::kReservation && used &&
                        parts_.config.expired_reservation != config::Expired::kStop;
  if (!lives_on) {
    return end(id, EndCause::kExpired,
               entry.lease.kind == LeaseKind::kReservation ? "its time is over"
                                                           : "its time limit is over");
  }
  if (entry.lease.state == LeaseState::kExpired) return;
  entry.lease.state = LeaseState::kExpired;
  log::warn("a reservation is over but its GPUs are still in use", {{"lease", to_string(id)}});
  parts_.on_change(entry, false);
}

void LeaseManager::yield_expired(const std::vector<GpuUuid>& gpus, const std::string& to_whom) {
  if (parts_.config.expired_reservation != config::Expired::kYield) return;
  std::vector<LeaseId> yielding;
  for (const auto& [id, entry] : entries_) {
    const bool there = std::any_of(
        gpus.begin(), gpus.end(),
        [&lease = entry.lease](const auto& gpu) { return lease.find_gpu(gpu) != nullptr; });
    if (there && entry.lease.state == LeaseState::kExpired) yielding.push_back(id);
  }
  for (const LeaseId id : yielding) {
    end(id, EndCause::kExpired, "its time was over, and " + to_whom + " waits for its GPUs");
  }
}

std::optional<LeaseId> LeaseManager::reservation_for(uid_t uid, const GpuUuid& gpu) const {
  for (const auto& [id, entry] : entries_) {
    const bool given_back = entry.cause && entry.cause != EndCause::kExpired;
    if (entry.lease.kind == LeaseKind::kReservation && entry.lease.uid == uid && !given_back &&
        entry.lease.find_gpu(gpu)) {
      return id;
    }
  }
  return std::nullopt;
}

void LeaseManager::cover(LeaseId id, const ports::ProcessId& process) {
  if (const auto it = entries_.find(id); it != entries_.end()) it->second.covered.add(process);
}

}  // namespace gpurota::daemon
