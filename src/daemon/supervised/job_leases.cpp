#include "daemon/supervised/job_leases.h"

namespace gpurota::daemon {
namespace {

// The job or the item whose run holds this lease; nullptr: there is none.
const JobEntry* holder_of(const JobEntries& jobs, LeaseId lease) {
  for (const auto& [id, job] : jobs) {
    if (job.lease == lease) return &job;
  }
  return nullptr;
}

}  // namespace

void JobLeases::restore() {
  for (const auto& [id, entry] : tables_.leases) {
    if (entry.lease.kind == LeaseKind::kJob && entry.holder) {
      jobs_.on_lease_restored(id, entry.holder->id);
    }
    for (const auto& [pid, command] : entry.commands) {
      jobs_.on_lease_restored(id, command.holder.id);
    }
    on_lease_change(entry, false);
  }
}

void JobLeases::on_lease_change(const LeaseEntry& entry, bool) {
  const bool reserved = entry.lease.kind == LeaseKind::kReservation;
  if (entry.lease.kind != LeaseKind::kJob && !reserved) return;
  // A run under a reservation has a time of its own, apart from the reservation's.
  const bool taken = entry.cause == EndCause::kReleased;
  if (taken || (reserved && entry.cause == EndCause::kExpired)) {
    jobs_.on_lease_ending(entry.lease.id, Jobs::LeaseEnd::kTakenAway, entry.reason);
  } else if (entry.cause == EndCause::kExpired) {
    jobs_.on_lease_ending(entry.lease.id, Jobs::LeaseEnd::kTimeOver, entry.reason);
  } else if (entry.cause == EndCause::kBooking) {
    jobs_.on_lease_ending(entry.lease.id, Jobs::LeaseEnd::kBooking, entry.reason);
  }
}

std::optional<std::string> JobLeases::end_of_command(const LeaseEntry& entry) const {
  if (entry.lease.kind != LeaseKind::kJob) return std::nullopt;
  const JobEntry* job = holder_of(jobs_.entries(), entry.lease.id);
  if (job == nullptr) job = holder_of(jobs_.items().runs(), entry.lease.id);
  const bool stops = job && job->life.state().end_reason == jobs::EndReason::kStopped;
  return stops ? std::optional(stopping_text(*job)) : std::nullopt;
}

void JobLeases::release(LeaseId lease, const std::string& reason) {
  leases_.end(lease, EndCause::kReleased, reason);
}

void JobLeases::on_over_limit(LeaseId lease, const std::string& what) {
  const LeaseEntry* const entry = tables_.find(lease);
  if (!entry || entry->lease.kind != LeaseKind::kJob) return;
  jobs_.on_lease_ending(lease, Jobs::LeaseEnd::kOverLimit, what);
  leases_.end(lease, EndCause::kReleased, what);
}

}  // namespace gpurota::daemon
