#include "daemon/notices/lease_notices.h"

#include "base/text.h"
#include "daemon/notices/notice_text.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpurota::daemon {
std::string author_text(ports::Processes& processes, uid_t uid) {
  return display_text(processes.user_name(uid), 32) + " (administrator)";
}

Notice LeaseNotices::about(const Lease& lease, NoticeKind kind, std::string text,
                           const std::optional<Author>& by) const {
  Notice notice{.kind = kind, .to = lease.uid, .lease = lease.id, .text = std::move(text)};
  for (const LeaseGpu& gpu : lease.gpus) notice.gpus.push_back(parts_.gpus.name_of(gpu.uuid));
  if (by) {
    notice.reason = by->reason;
    notice.by = by->uid;
  }
  return notice;
}

void LeaseNotices::restore(const std::map<LeaseId, LeaseEntry>& leases) {
  for (const auto& [id, entry] : leases) {
    if (entry.lease.kind == LeaseKind::kFiller) continue;
    known_[id] = {entry.lease, entry.cause.has_value(), parts_.wall_clock(), false};
  }
  arm();
}

void LeaseNotices::on_lease_change(const LeaseEntry& entry, bool gone) {
  const Lease& lease = entry.lease;
  if (lease.kind == LeaseKind::kFiller) return;
  const auto [at, made] = known_.try_emplace(lease.id, Known{lease, false, {}, false});
  Known& known = at->second;
  const Lease before = std::exchange(known.lease, lease);
  const bool timed = before.ends.has_value() || lease.ends.has_value();
  if (made || before.ends != lease.ends) {
    known.told = parts_.wall_clock();
    known.warned = false;
  }
  const bool ends_now = entry.cause && !std::exchange(known.ending, entry.cause.has_value());
  if (gone) known_.erase(at);
  if (timed) arm();
  // Notify last, as a listener may change the lease.
  if (ends_now) return on_end(entry);
  if (!made && !gone && !entry.cause) on_change(entry, before);
}

void LeaseNotices::on_change(const LeaseEntry& entry, const Lease& before) {
  const Lease& lease = entry.lease;
  if (lease.state == LeaseState::kExpired && before.state != LeaseState::kExpired) {
    const std::string text = outlived_text(lease.id, parts_.config.expired_reservation);
    parts_.owners.tell_owner(lease.id, text);
    return parts_.listener.on_notice(about(lease, NoticeKind::kExpired, text));
  }
  if (!entry.by || entry.by->uid == lease.uid) return;
  const std::string text = changed_text(before, lease, author_text(parts_.processes, entry.by->uid),
                                        entry.by->reason, parts_.wall_clock());
  if (text.empty()) return;
  parts_.owners.tell_owner(lease.id, text);
  parts_.listener.on_notice(about(lease, NoticeKind::kChanged, text, entry.by));
}

// Sends the notice by the channels only: the terminals that hold the lease show its end and the
// reason anyway.
void LeaseNotices::on_end(const LeaseEntry& entry) {
  const Lease& lease = entry.lease;
  if (entry.cause == EndCause::kFinished || entry.cause == EndCause::kLost) return;
  const bool by_owner = entry.by && entry.by->uid == lease.uid;
  if (by_owner) return;
  const NoticeKind kind = entry.cause == EndCause::kExpired ? NoticeKind::kExpired
                          : entry.by                        ? NoticeKind::kReleased
                                                            : NoticeKind::kStopped;
  const std::string text = entry.cause == EndCause::kBooking ? left_text(lease.id, entry.reason)
                                                             : ended_text(lease.id, entry.reason);
  parts_.listener.on_notice(about(lease, kind, text, entry.by));
}

void LeaseNotices::on_request_gone(const QueueEntry& entry, const Error& why) {
  const auto& by = entry.cancelled_by;
  if (!by || by->uid == entry.asked.uid) return;
  Notice notice{.kind = NoticeKind::kRequestCancelled, .to = entry.asked.uid};
  notice.text = cancelled_text(entry.id, why.message);
  notice.reason = by->reason;
  notice.by = by->uid;
  parts_.listener.on_notice(notice);
}

void LeaseNotices::on_job_end(uid_t owner, NoticeKind kind, const std::string& job,
                              const std::string& why) {
  Notice notice{.kind = kind, .to = owner};
  notice.text = job_end_text(kind, job, why);
  parts_.listener.on_notice(notice);
}

std::optional<WallTime> LeaseNotices::next_of(const Known& known) const {
  const Lease& lease = known.lease;
  if (!lease.ends || known.ending || lease.state == LeaseState::kExpired) return std::nullopt;
  std::optional<WallTime> next;
  for (const auto before : parts_.config.notify.before_end) {
    const WallTime when = *lease.ends - before;
    if (when > known.told && (!next || when < *next)) next = when;
  }
  return next;
}

void LeaseNotices::warn(Known& known, WallTime now) {
  const Lease& lease = known.lease;
  known.told = now;
  const bool first = !std::exchange(known.warned, true);
  const std::string text = ends_soon_text(lease.id, *lease.ends - now);
  parts_.owners.tell_owner(lease.id, text);
  // A terminal gets a line for each warning, but the channels only the first warning.
  if (first) parts_.listener.on_notice(about(lease, NoticeKind::kEndsSoon, text));
}

void LeaseNotices::warn_in_time() {
  const WallTime now = parts_.wall_clock();
  std::vector<LeaseId> due;
  for (const auto& [id, known] : known_) {
    const auto next = next_of(known);
    if (next && *next <= now) due.push_back(id);
  }
  for (const LeaseId id : due) {
    const auto at = known_.find(id);
    if (at == known_.end()) continue;
    // After the end of a lease it is too late for a warning.
    if (now < *at->second.lease.ends) warn(at->second, now);
    at->second.told = now;
  }
  arm();
}

void LeaseNotices::arm() {
  timer_.reset();
  std::optional<WallTime> next;
  for (const auto& [id, known] : known_) {
    const auto when = next_of(known);
    if (when && (!next || *when < *next)) next = when;
  }
  if (!next) return;
  const Duration left = *next - parts_.wall_clock();
  timer_ = parts_.loop.add_timer(
      parts_.loop.now() +
          std::clamp(left, Duration(std::chrono::milliseconds(1)), ports::kLongestWallWait),
      ports::Urgency::kHousekeeping, [this] {
        const auto this_timer = std::move(timer_);
        warn_in_time();
      });
}

}  // namespace gpurota::daemon
