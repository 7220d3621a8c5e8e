#include "daemon/supervised/jobs.h"

#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace gpurota::daemon {
Jobs::Jobs(Parts parts)
    : parts_(std::move(parts)), launcher_(parts_.directory, parts_.keeper, parts_.systemd_run) {}

jobs::Moment Jobs::now() const { return {parts_.loop.now(), parts_.wall_clock()}; }

jobs::Policy Jobs::policy_of(const jobs::JobSpec& spec) const {
  // TERM reaches the command through two processes, and `gpurota run` has a grace of its own.
  return {spec.restart, parts_.grace() + std::chrono::seconds(2)};
}

const JobEntry* Jobs::find(uid_t uid, const std::string& name) const {
  for (const auto& [id, job] : entries_) {
    if (job.uid == uid && job.spec.name == name && !job.is_removed()) return &job;
  }
  return nullptr;
}

Result<jobs::LogPart> Jobs::read_log(std::uint64_t id, std::optional<jobs::LogCursor> from,
                                     std::size_t most) const {
  return launcher_.read_log(id, from, most);
}

const JobEntry* Jobs::job_of(const ports::ProcessId& run) const {
  const auto info = parts_.processes.read_info(run.pid);
  if (!info || info->id() != run || info->parent <= 1) return nullptr;
  for (const auto& [id, job] : entries_) {
    if (!job.keeper) continue;
    // The keeper collects what loses its parent in the run: those are no runs.
    if (job.runner && *job.runner != run) continue;
    if (job.keeper->pid() == info->parent && job.keeper->alive()) return &job;
    // We may hear of the keeper after it has begun.
    if (job.starting && launcher_.is_held_by(id, info->parent)) return &job;
  }
  return nullptr;
}

JobEntry* Jobs::entry_of(const ports::ProcessId& run) {
  const JobEntry* job = job_of(run);
  return job == nullptr ? nullptr : &entries_.at(job->id);
}

void Jobs::on_refused(const ports::ProcessId& run, const std::string& why) {
  if (JobEntry* job = entry_of(run)) job->refusal = why;
}

void Jobs::on_held(const ports::ProcessId& run, LeaseId lease) {
  JobEntry* job = entry_of(run);
  if (job == nullptr) return;
  job->runner = run;
  job->lease = lease;
  job->refusal.clear();
  job->life.on_held(now());
  settle(job->id);
}

void Jobs::on_cancelled(const ports::ProcessId& run, const std::string& why) {
  JobEntry* job = entry_of(run);
  if (job == nullptr) return;
  job->life.on_lease_lost(now(), why);
  settle(job->id);
}

void Jobs::on_time_over(const ports::ProcessId& run, const std::string& why) {
  JobEntry* job = entry_of(run);
  if (job == nullptr) return;
  job->life.on_timeout(now(), why);
  settle(job->id);
}

void Jobs::on_lease_ending(LeaseId lease, LeaseEnd end, const std::string& why) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, job] : entries_) {
    if (job.lease == lease && job.keeper) ids.push_back(id);
  }
  for (const std::uint64_t id : ids) {
    jobs::Supervision& life = entries_.at(id).life;
    switch (end) {
      case LeaseEnd::kTakenAway:
        life.on_lease_lost(now(), why);
        break;
      case LeaseEnd::kOverLimit:
        life.on_over_limit(now(), why);
        break;
      case LeaseEnd::kTimeOver:
        life.on_timeout(now(), why);
        break;
    }
    settle(id);
  }
}

Result<void> Jobs::control(std::uint64_t id, What what, bool force) {
  JobEntry& job = entries_.at(id);
  if (what == What::kRemove && !force) GPUROTA_TRY(check_removal(job));
  switch (what) {
    case What::kStart:
      carry_out(job, job.life.start(now()));
      break;
    case What::kRestart:
      carry_out(job, job.life.restart(now()));
      break;
    case What::kRemove:
      GPUROTA_TRY(unname(job));
      carry_out(job, job.life.remove(now()));
      break;
    case What::kStop:
      carry_out(job, job.life.stop(now()));
      break;
  }
  const std::string name = job.spec.name;
  settle(id);
  return unstored_.heard_of(id, name);
}

void Jobs::carry_out(JobEntry& job, const jobs::Actions& actions) {
  for (const jobs::Action action : actions) {
    switch (action) {
      case jobs::Action::kRequestLease:
        launch(job);
        break;
      case jobs::Action::kTerminate:
        if (job.keeper) (void)job.keeper->handle->send_signal(SIGTERM);
        break;
      case jobs::Action::kKill:
        // The keeper kills the run and lives to report it.
        if (job.keeper) (void)job.keeper->handle->send_signal(SIGQUIT);
        break;
      // The keeper's `gpurota run` asks for the lease, and gives it back.
      case jobs::Action::kCancelRequest:
      case jobs::Action::kSpawn:
      case jobs::Action::kReleaseLease:
        break;
    }
  }
}

void Jobs::launch(JobEntry& job) {
  (void)job.life.on_lease(now());
  job.adopted = false;
  job.starting = !parts_.systemd_run.empty();
  // Before there is a process: a daemon that is killed now finds the keeper by its lock, or that there
  // was none; what the last run left is not this one's.
  launcher_.clear(job.id);
  save_or_say(job);
  const auto pid =
      launcher_.start(job.id, {job.uid, job.user, parts_.gpurota, parts_.runtime_dir, job.spec},
                      [&](pid_t keeper) { cgroups_.make(keeper, fmt::format("job-{}", job.id)); });
  if (!pid) {
    carry_out(job, job.life.on_cannot_start(now(), pid.error().message));
    return;
  }
  log::info("job started", {{"job", job.spec.name}, {"uid", job.uid}});
  const std::uint64_t id = job.id;
  auto keeper = track_number(parts_.processes, *pid, [this, id] { on_keeper_death(id); });
  if (keeper) {
    job.keeper = std::move(*keeper);
  } else {
    // Nobody would hear of its end. Our child, not collected yet: the number is its own.
    log::warn("a job's keeper cannot be watched, ending it",
              {{"job", job.spec.name}, {"error", keeper.error().message}});
    (void)::kill(*pid, SIGKILL);
    parts_.loop.post([this, id, keeper = *pid] {
      launcher_.collect(keeper);
      on_keeper_death(id);
    });
  }
}

// The lock tells who keeps it. Nobody: nothing.
Result<std::optional<TrackedProcess>> Jobs::find_keeper(std::uint64_t id) {
  GPUROTA_ASSIGN_OR_RETURN(const auto holder, launcher_.find_holder(id));
  if (!holder) return std::nullopt;
  GPUROTA_ASSIGN_OR_RETURN(
      auto keeper,
      unless_gone(track_number(parts_.processes, *holder, [this, id] { on_keeper_death(id); })));
  if (!keeper || !launcher_.is_held_by(id, *holder)) return std::nullopt;
  return keeper;
}

// The keeper that systemd was asked for goes on where the one who asked has ended.
Result<bool> Jobs::hand_over(JobEntry& job) {
  const std::uint64_t id = job.id;
  GPUROTA_ASSIGN_OR_RETURN(auto keeper, find_keeper(id));
  if (!keeper) return false;
  job.keeper = std::move(*keeper);
  job.starting = false;
  // What the other one was told meanwhile, this one has not heard.
  if (job.life.state().phase == jobs::Phase::kStopping) {
    (void)job.keeper->handle->send_signal(SIGTERM);
  }
  return true;
}

jobs::Actions Jobs::outcome(JobEntry& job) {
  const auto report = launcher_.read_report(job.id);
  const bool stopping = job.life.state().phase == jobs::Phase::kStopping;
  // On a full disk there is no report either.
  if (!report && !stopping && !job.refusal.empty()) {
    return job.life.on_cannot_start(now(), job.refusal);
  }
  if (!report) return job.life.on_exit_unseen(now());
  if (!stopping && !report->cannot_start.empty()) {
    return job.life.on_cannot_start(now(), report->cannot_start);
  }
  const bool asking = job.life.state().asking;
  const bool failed = !stopping && !report->signalled && report->code != 0;
  // There was nobody to ask when the last daemon ended.
  if (failed && asking && job.adopted && job.refusal.empty() && report->code == jobs::kRunFailed) {
    return job.life.on_never_began(now());
  }
  // `gpurota run` has not come to the command: what it said is why.
  if (failed && (asking || !job.refusal.empty())) {
    return job.life.on_cannot_start(
        now(), job.refusal.empty() ? launcher_.last_line(job.id) : job.refusal);
  }
  return job.life.on_exit(now(), report->code, report->signalled);
}

void Jobs::on_keeper_death(std::uint64_t id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  JobEntry& job = it->second;
  if (job.keeper) {
    launcher_.collect(job.keeper->pid());
    cgroups_.on_end(job.keeper->pid());
  }
  job.keeper.reset();
  const auto handed_over = hand_over(job);
  // It may live, and nobody can look at it now.
  if (!handed_over) return look_again(job);
  if (*handed_over) return settle(id);
  const jobs::Actions actions = outcome(job);
  job.starting = false;
  job.lease.reset();
  job.runner.reset();
  job.refusal.clear();
  log::info("job's run is over",
            {{"job", job.spec.name},
             {"uid", job.uid},
             {"reason", job.life.state().history.empty()
                            ? "none"
                            : jobs::to_string(job.life.state().history.back().reason)}});
  carry_out(job, actions);
  settle(id);
}

void Jobs::look_again(JobEntry& job) {
  auto timer = parts_.loop.add_timer(parts_.loop.now() + kLookAgain, ports::Urgency::kHousekeeping,
                                     [this, id = job.id] { on_keeper_death(id); });
  if (timer) job.look_again = std::move(*timer);
}

void Jobs::arm(JobEntry& job) {
  job.timer.reset();
  const auto when = job.life.next_time();
  if (!when) return;
  const std::uint64_t id = job.id;
  auto timer = parts_.loop.add_timer(*when, ports::Urgency::kHousekeeping, [this, id] {
    const auto it = entries_.find(id);
    if (it == entries_.end()) return;
    const auto this_timer = std::move(it->second.timer);
    carry_out(it->second, it->second.life.on_time(now()));
    settle(id);
  });
  if (timer) job.timer = std::move(*timer);
}

void Jobs::settle(std::uint64_t id) {
  const auto it = entries_.find(id);
  JobEntry& job = it->second;
  if (job.is_removed() && !job.keeper) {
    job.timer.reset();
    if (auto removed = forget(id); !removed) {
      log::error("cannot remove a job from the store", {{"error", removed.error().message}});
    }
    return;
  }
  save_or_say(job);
  arm(job);
}

// One that the store still has would come back with the next daemon.
Result<void> Jobs::forget(std::uint64_t id) {
  GPUROTA_TRY(unstored_.note(id, parts_.store->remove_job(id)));
  if (auto gone = launcher_.forget(id); !gone) {
    log::warn("cannot remove what a job left", {{"error", gone.error().message}});
  }
  const JobEntry& job = entries_.at(id);
  log::info("job removed", {{"job", job.spec.name}, {"uid", job.uid}});
  entries_.erase(id);
  return {};
}

void Jobs::store_again() {
  unstored_.write_again([this](std::uint64_t id) {
    const JobEntry& job = entries_.at(id);
    const bool gone = job.is_removed() && !job.keeper;
    return gone ? forget(id) : unstored_.note(id, save(job));
  });
}

ports::StoredJob Jobs::row_of(const JobEntry& job) const {
  ports::StoredJob row{job.id,
                       job.uid,
                       job.user,
                       encode(job.spec),
                       encode(job.life.state()),
                       {},
                       parts_.processes.boot_id()};
  if (job.keeper) row.keeper = job.keeper->id;
  return row;
}

Result<void> Jobs::save(const JobEntry& job) const { return parts_.store->save_job(row_of(job)); }

void Jobs::save_or_say(const JobEntry& job) {
  unstored_.note_or_say(job.id, job.spec.name, save(job));
}

}  // namespace gpurota::daemon
