#include "daemon/supervised/jobs.h"

#include "base/log.h"

#include <fmt/format.h>

namespace gpurota::daemon {
namespace {

// The end of the job, if its owner has not been told of it.
std::optional<NoticeKind> end_to_tell(JobEntry& job) {
  const jobs::Phase phase = job.life.state().phase;
  if (std::exchange(job.told, phase) == phase) return std::nullopt;
  if (phase == jobs::Phase::kFinished) return NoticeKind::kJobFinished;
  if (phase == jobs::Phase::kFailed) return NoticeKind::kJobFailed;
  if (phase == jobs::Phase::kCancelled) return NoticeKind::kJobCancelled;
  return std::nullopt;
}

// The bound of the log of a job or an item. The spec of an array decides for its items.
Bytes log_of(const JobEntries& jobs, const JobEntry& job) {
  const auto array = jobs.find(job.array);
  return jobs::log_bound(array == jobs.end() ? job.spec : array->second.spec);
}

// The name that people use; for an item "sweep[7]".
std::string run_name(const JobEntry& job) {
  return job.array == 0 ? job.spec.name : fmt::format("{}[{}]", job.spec.name, job.index);
}

}  // namespace

Jobs::Jobs(Parts parts)
    : parts_(std::move(parts)),
      supervisor_(parts_.supervisor, ports::ProgramKind::kJob, parts_.directory, *this),
      items_({.loop = parts_.loop,
              .processes = parts_.processes,
              .supervisor = supervisor_,
              .jobs = entries_,
              .now = [this] { return now(); },
              .policy_of = [this](const jobs::JobSpec& spec) { return policy_of(spec); },
              .carry_out = [this](JobEntry& job,
                                  const jobs::Actions& actions) { carry_out(job, actions); },
              .settle = [this](std::uint64_t id) { settle(id); },
              .take_up_run = [this](JobEntry& job) { return take_up_run(job); }}) {}

jobs::Moment Jobs::now() const { return {parts_.loop.now(), parts_.wall_clock()}; }

jobs::Policy Jobs::policy_of(const jobs::JobSpec& spec) const {
  // The restart policy of an array applies to its items, not to the array itself.
  return {spec.is_array() ? jobs::RestartPolicy::kNo : spec.restart,
          parts_.grace() + Supervisor::kKeeperGrace};
}

const JobEntry* Jobs::job_of(const ports::ProcessId& run) const {
  const auto info = parts_.processes.read_info(run.pid);
  if (!info || info->id() != run || info->parent <= 1) return nullptr;
  for (const JobEntries* all : {&entries_, &items_.runs()}) {
    for (const auto& [id, job] : *all) {
      // Orphans of the run also become children of the keeper, but are not runs.
      if (job.runner && *job.runner != run) continue;
      if (supervisor_.is_kept_by(id, info->parent)) return &job;
    }
  }
  return nullptr;
}

JobEntry* Jobs::entry_of(const ports::ProcessId& run) {
  const JobEntry* job = job_of(run);
  return job == nullptr ? nullptr : items_.entry(job->id);
}

void Jobs::on_refused(const ports::ProcessId& run, const std::string& why, bool may_pass) {
  JobEntry* job = entry_of(run);
  if (job == nullptr) return;
  job->refusal = why;
  job->refusal_may_pass = may_pass;
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
  for (const JobEntries* all : {&entries_, &items_.runs()}) {
    for (const auto& [id, job] : *all) {
      if (job.lease == lease && supervisor_.is_on(id)) ids.push_back(id);
    }
  }
  for (const std::uint64_t id : ids) {
    JobEntry* const job = items_.entry(id);
    if (job == nullptr) continue;
    jobs::Supervision& life = job->life;
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
      case LeaseEnd::kBooking:
        life.on_booking(now(), why);
        break;
    }
    settle(id);
  }
}

Result<void> Jobs::control(std::uint64_t id, What what, const std::string& by) {
  JobEntry& job = entries_.at(id);
  const std::string name = job.spec.name;
  std::vector<std::uint64_t> others;
  bool chained = false;
  const bool starts = what == What::kStart || what == What::kRestart;
  const bool rests = is_settled(job.life.state().phase);
  if (starts && rests) {
    GPUROTA_ASSIGN_OR_RETURN(chained, must_wait(entries_, job.uid, job.spec));
  }
  if (job.spec.is_array() && starts) {
    if (what == What::kRestart && (!rests || is_on(job))) {
      return fail(
          Code::kInvalid,
          fmt::format("job {0} has not ended, and 'restart' begins with all its items again: "
                      "'gpurota job stop {0}' first, or restart single items, {0}[7]",
                      name));
    }
    const bool over = job.items.is_over() && !job.life.state().retries_items;
    if (rests && (what == What::kRestart || over)) GPUROTA_TRY(items_.reset(job));
  }
  switch (what) {
    case What::kStart:
      carry_out(job, job.life.start(now(), chained));
      break;
    case What::kRestart:
      carry_out(job, job.life.restart(now(), by, chained));
      break;
    case What::kRemove: {
      GPUROTA_ASSIGN_OR_RETURN(others, unname(job, is_on(job)));
      carry_out(job, job.life.remove(now(), by));
      break;
    }
    case What::kStop:
      carry_out(job, job.life.stop(now(), by));
      break;
  }
  settle(id);
  for (const std::uint64_t other : others) settle(other);
  return supervisor_.check_stored(id, name);
}

void Jobs::carry_out(JobEntry& job, const jobs::Actions& actions) {
  for (const jobs::Action action : actions) {
    switch (action) {
      case jobs::Action::kRequestLease:
        launch(job);
        break;
      case jobs::Action::kTerminate:
        if (job.spec.is_array()) items_.stop(job);
        supervisor_.end(job.id);
        break;
      case jobs::Action::kKill:
        supervisor_.kill(job.id);
        break;
      // Nothing to do: the keeper's `gpurota run` asks for the lease, and gives it back.
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
  job.refusal.clear();
  // The items start when the array is settled.
  if (job.spec.is_array()) return job.life.on_held(now());
  // Clear the files and store the job before there is a process. If this daemon is killed now, the
  // next daemon learns from the lock whether there is a keeper, and cannot mistake a file of the
  // last run for a file of this run.
  supervisor_.files().clear(job.id);
  supervisor_.settle(job);
  if (const auto launched = supervisor_.launch(job.id, job, job.spec, log_of(entries_, job));
      !launched) {
    job.refusal = launched.error().message;
    // kIo: the disk is full, or the machine has too many processes; both may be temporary.
    job.refusal_may_pass = launched.error().code == Code::kIo;
    if (!items_.put_off(job)) carry_out(job, job.life.on_cannot_start(now(), job.refusal));
    return;
  }
  log::info("job started", {{"job", run_name(job)}, {"uid", job.uid}});
}

void Jobs::on_handed_over(std::uint64_t id) {
  const JobEntry* const job = items_.entry(id);
  if (job && job->life.state().phase == jobs::Phase::kStopping) supervisor_.end(id);
  settle(id);
}

jobs::Actions Jobs::outcome(JobEntry& job) {
  const auto report = supervisor_.files().read_report(job.id);
  const bool stopping = job.life.state().phase == jobs::Phase::kStopping;
  // On a full disk a refused run leaves no report, but the refusal is known here.
  if (!report && !stopping && !job.refusal.empty()) {
    return job.life.on_cannot_start(now(), job.refusal);
  }
  if (!report) return job.life.on_exit_unseen(now());
  if (!stopping && !report->cannot_start.empty()) {
    return job.life.on_cannot_start(now(), report->cannot_start);
  }
  const bool asking = job.life.state().asking;
  const bool failed = !stopping && !report->signalled && report->code != 0;
  // The run asked for its lease after the last daemon had ended, and found no daemon.
  if (failed && asking && job.adopted && job.refusal.empty() && report->code == jobs::kRunFailed) {
    return job.life.on_never_began(now());
  }
  // `gpurota run` has not started the command: the reason is the last line that it printed.
  if (failed && (asking || !job.refusal.empty())) {
    return job.life.on_cannot_start(
        now(), job.refusal.empty() ? supervisor_.files().last_line(job.id) : job.refusal);
  }
  return job.life.on_exit(now(), report->code, report->signalled);
}

void Jobs::on_over(std::uint64_t id) {
  JobEntry* const over = items_.entry(id);
  if (over == nullptr) return;
  JobEntry& job = *over;
  if (items_.put_off(job)) return settle(id);
  const jobs::Actions actions = outcome(job);
  job.lease.reset();
  job.runner.reset();
  job.refusal.clear();
  job.used.clear();
  log::info("job's run is over",
            {{"job", run_name(job)},
             {"uid", job.uid},
             {"reason", job.life.state().history.empty()
                            ? "none"
                            : jobs::to_string(job.life.state().history.back().reason)}});
  carry_out(job, actions);
  settle(id);
}

void Jobs::arm(JobEntry& job) {
  job.timer.reset();
  const auto when = job.life.next_time();
  if (!when) return;
  job.next_time = parts_.wall_clock() +
                  std::chrono::duration_cast<std::chrono::milliseconds>(*when - parts_.loop.now());
  const std::uint64_t id = job.id;
  job.timer = parts_.loop.add_timer(*when, ports::Urgency::kHousekeeping, [this, id] {
    JobEntry* const due = items_.entry(id);
    if (due == nullptr) return;
    const auto this_timer = std::move(due->timer);
    carry_out(*due, due->life.on_time(now()));
    settle(id);
  });
}

void Jobs::settle(std::uint64_t id) {
  // A change of another job may have started or dropped this one since.
  const JobEntry* const changed = items_.entry(id);
  if (changed == nullptr) return;
  if (changed->array != 0 && is_at_rest(*changed)) return items_.put_to_rest(id);
  supervisor_.settle(*changed);
  JobEntry* const there = items_.entry(id);
  if (there == nullptr) return;
  JobEntry& job = *there;
  arm(job);
  if (job.array != 0) {
    if (const auto array = entries_.find(job.array); array != entries_.end()) {
      items_.take_step_soon(array->second);
    }
    return;
  }
  if (job.spec.is_array()) items_.take_step_soon(job);
  if (const auto kind = end_to_tell(job); kind && parts_.on_end) {
    const jobs::JobState& state = job.life.state();
    parts_.on_end(job.uid, *kind, job.spec.name,
                  *kind == NoticeKind::kJobFailed ? run_end_text(state) : state.end_detail);
  }
  if (job.life.state().phase == jobs::Phase::kChained) return check_chain(id);
  if (!is_settled(job.life.state().phase) && !job.is_removed()) return;
  for (const std::uint64_t other : chained_after(entries_, job)) check_chain(other);
}

void Jobs::check_chain(std::uint64_t id) {
  JobEntry& job = entries_.at(id);
  if (!restored_ || job.life.state().phase != jobs::Phase::kChained || job.is_removed()) return;
  const Chain chain = chain_of(entries_, job.uid, job.spec);
  if (chain.verdict == jobs::Verdict::kWaits) return;
  if (chain.verdict == jobs::Verdict::kMet) {
    carry_out(job, job.life.on_chain_met());
  } else {
    job.life.on_chain_broken(chain.text);
  }
  settle(id);
}

void Jobs::on_use(const GpuUuid& gpu, const std::map<LeaseId, Bytes>& used) {
  for (JobEntries* all : {&entries_, &items_.runs()}) {
    for (auto& [id, job] : *all) {
      if (!job.lease) continue;
      const auto now_used = used.find(*job.lease);
      job.used[gpu] = now_used == used.end() ? Bytes() : now_used->second;
      Bytes sum;
      for (const auto& [each, bytes] : job.used) sum += bytes;
      // The sum is zero if it is not known how much processes use.
      if (!sum.is_zero()) job.life.on_use(sum);
    }
  }
}

Result<void> Jobs::store(std::uint64_t id) {
  if (array_of(id) != 0) return items_.store(id);
  const JobEntry& job = entries_.at(id);
  if (!job.is_removed() || is_on(job))
    return supervisor_.store()->save_jobs({row_of(job, parts_.processes.boot_id())});
  GPUROTA_ASSIGN_OR_RETURN(const auto others, unname(job, false));
  GPUROTA_TRY(supervisor_.remove(job, {id}));
  items_.forget(job);
  entries_.erase(id);
  for (const std::uint64_t other : others) settle(other);
  return {};
}

}  // namespace gpurota::daemon
