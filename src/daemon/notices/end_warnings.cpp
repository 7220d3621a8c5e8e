#include "daemon/notices/end_warnings.h"

#include "base/log.h"
#include "daemon/notices/notice_text.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

bool leaves_first(const Lease& lease) {
  return lease.leaves && (!lease.ends || *lease.leaves < *lease.ends);
}

std::optional<WallTime> end_of(const LeaseEntry& entry) {
  const Lease& lease = entry.lease;
  const bool over = entry.cause || lease.state != LeaseState::kActive;
  if (!lease.warning.is_set() || over) return std::nullopt;
  return leaves_first(lease) ? lease.leaves : lease.ends;
}

}  // namespace

void EndWarnings::restore() {
  for (const auto& [id, entry] : parts_.tables.leases) arm(entry);
}

void EndWarnings::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (gone) {
    timers_.erase(entry.lease.id);
  } else {
    arm(entry);
  }
}

// Even a warning that is due now is sent by the timer and not here, so that the other listeners are
// notified of the change first.
void EndWarnings::arm(const LeaseEntry& entry) {
  const LeaseId id = entry.lease.id;
  const auto end = end_of(entry);
  if (!end) {
    timers_.erase(id);
    return;
  }
  const Duration left = *end - entry.lease.warning.before - parts_.wall_clock();
  if (left <= Duration(0) && entry.lease.warned) {
    timers_.erase(id);
    return;
  }
  const bool at_once = left <= Duration(0) || entry.lease.warned;
  start_timer(id, at_once ? Duration(0) : std::min(left, ports::kLongestWallWait));
}

void EndWarnings::check(LeaseId id) {
  const LeaseEntry* const entry = parts_.tables.find(id);
  const auto end = entry ? end_of(*entry) : std::nullopt;
  if (!end) return;
  const Duration left = *end - parts_.wall_clock();
  const bool due = left <= Duration(entry->lease.warning.before);
  if (due == entry->lease.warned) return arm(*entry);
  Lease changed = entry->lease;
  // A lease whose end has moved to a later time is warned again.
  changed.warned = due;
  const EndWarning warning = changed.warning;
  if (auto stored = parts_.leases.change(std::move(changed)); !stored) {
    log::error("cannot store that a lease is warned of its end, trying again",
               {{"lease", to_string(id)}, {"error", stored.error().message}});
    return again(id, left);
  }
  const LeaseEntry* const now = parts_.tables.find(id);
  if (!due || !now) return;
  if (!now->lease.warned) return again(id, left);
  parts_.owners.tell_owner(
      id, warned_text(id, std::chrono::duration_cast<std::chrono::milliseconds>(left),
                      leaves_first(now->lease), warning, now->signalled));
}

// Tries again later: a program that has just begun may not handle the signal yet.
void EndWarnings::again(LeaseId id, Duration left) {
  start_timer(id,
              std::clamp<Duration>(left / 10, std::chrono::seconds(1), ports::kLongestWallWait));
}

void EndWarnings::start_timer(LeaseId id, Duration wait) {
  timers_[id] =
      parts_.loop.add_timer(parts_.loop.now() + wait, ports::Urgency::kSchedule, [this, id] {
        const auto this_timer = std::move(timers_[id]);
        timers_.erase(id);
        check(id);
      });
}

}  // namespace gpurota::daemon
