#include "daemon/jobs.h"

#include "base/log.h"
#include "base/text.h"
#include "jobs/adoption.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace gpurota::daemon {

Jobs::Jobs(Parts parts) : parts_(std::move(parts)), launcher_(parts_.directory, parts_.keeper) {}

jobs::Moment Jobs::now() const { return {parts_.loop.now(), parts_.wall_clock()}; }

jobs::Policy Jobs::policy_of(const jobs::JobSpec& spec) const {
  // TERM reaches the command through two processes, and `gpurota run` has a grace of its own.
  return {spec.restart, spec.timeout, parts_.grace() + std::chrono::seconds(2)};
}

const JobEntry* Jobs::find(uid_t uid, const std::string& name) const {
  for (const auto& [id, job] : entries_) {
    if (job.uid == uid && job.spec.name == name && !job.removed) return &job;
  }
  return nullptr;
}

Result<std::string> Jobs::read_log(std::uint64_t id, std::size_t most) const {
  return launcher_.read_log(id, most);
}

Result<void> Jobs::check_new(uid_t uid, const jobs::JobSpec& spec) const {
  if (parts_.store == nullptr || parts_.keeper.empty() || parts_.gpurota.empty()) {
    return fail(Code::kUnavailable, "this daemon has no jobs: gpurota-keeper is not installed");
  }
  if (parts_.own_uid != 0 && uid != parts_.own_uid) {
    return fail(Code::kDenied,
                fmt::format("this daemon runs as uid {} and can run no job of another user",
                            parts_.own_uid));
  }
  GPUROTA_TRY(jobs::check_spec(spec));
  std::vector<jobs::Ordered> order;
  for (const auto& [id, job] : entries_) {
    if (job.uid != uid) continue;
    if (job.spec.name == spec.name) {
      return fail(Code::kInvalid,
                  fmt::format("there is a job {0} already: gpurota job remove {0}", spec.name));
    }
    order.push_back({job.spec.name, job.spec.after});
  }
  if (order.size() >= kMostJobs) {
    return fail(Code::kLimit, fmt::format("you have {} jobs, there can be no more", kMostJobs));
  }
  order.push_back({spec.name, spec.after});
  GPUROTA_TRY(jobs::start_order(order));
  return {};
}

Result<const JobEntry*> Jobs::add(uid_t uid, jobs::JobSpec spec) {
  GPUROTA_TRY(check_new(uid, spec));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, parts_.store->next_job_id());
  JobEntry job{id,
               uid,
               parts_.processes.user_name(uid),
               std::move(spec),
               jobs::Supervision(jobs::Policy{}),
               {},
               false,
               nullptr};
  job.life.set_policy(policy_of(job.spec));
  GPUROTA_TRY(save(job));
  const auto [it, added] = entries_.emplace(id, std::move(job));
  log::info("job added", {{"job", it->second.spec.name}, {"uid", uid}});
  carry_out(it->second, it->second.life.start(now()));
  settle(id);
  return &it->second;
}

Result<void> Jobs::control(std::uint64_t id, What what, bool force) {
  JobEntry& job = entries_.at(id);
  const bool runs = job.keeper.has_value();
  if (what == What::kRemove && runs && !force) {
    return fail(Code::kInvalid, fmt::format("{0} runs: 'gpurota job remove --force {0}' stops it "
                                            "and removes it",
                                            job.spec.name));
  }
  switch (what) {
    case What::kStart:
      carry_out(job, job.life.start(now()));
      break;
    case What::kRestart:
      carry_out(job, job.life.restart(now()));
      break;
    case What::kRemove:
      job.removed = true;
      [[fallthrough]];
    case What::kStop:
      carry_out(job, job.life.stop(now()));
      break;
  }
  settle(id);
  return {};
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
  // Before there is a process: a daemon that is killed now finds the keeper by its lock.
  save_or_say(job);
  const auto pid =
      launcher_.start(job.id, {job.uid, job.user, parts_.gpurota, parts_.runtime_dir, job.spec});
  if (!pid) {
    carry_out(job, job.life.on_cannot_start(now(), pid.error().message));
    return;
  }
  const std::uint64_t id = job.id;
  auto keeper = track(parts_.processes, *pid, std::nullopt, [this, id] { on_keeper_death(id); });
  if (keeper) {
    job.keeper = std::move(*keeper);
  } else {
    launcher_.collect(*pid);
    parts_.loop.post([this, id] { on_keeper_death(id); });
  }
}

void Jobs::on_keeper_death(std::uint64_t id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  JobEntry& job = it->second;
  if (job.keeper) launcher_.collect(job.keeper->pid());
  job.keeper.reset();
  const auto report = launcher_.read_report(id);
  jobs::Actions actions;
  if (!report) {
    actions = job.life.on_exit_unseen(now());
  } else if (!report->cannot_start.empty()) {
    actions = job.life.on_cannot_start(now(), report->cannot_start);
  } else {
    actions = job.life.on_exit(now(), report->code, report->signalled);
  }
  log::info("job's run is over",
            {{"job", job.spec.name},
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
  if (job.removed && !job.keeper) {
    if (auto removed = parts_.store->remove_job(id); !removed) {
      log::error("cannot remove a job from the store", {{"error", removed.error().message}});
    }
    if (auto gone = launcher_.forget(id); !gone) {
      log::warn("cannot remove what a job left", {{"error", gone.error().message}});
    }
    log::info("job removed", {{"job", job.spec.name}, {"uid", job.uid}});
    entries_.erase(it);
    return;
  }
  save_or_say(job);
  arm(job);
}

Result<void> Jobs::save(const JobEntry& job) {
  ports::StoredJob row{job.id,
                       job.uid,
                       job.user,
                       encode(job.spec),
                       encode(job.life.state()),
                       {},
                       parts_.processes.boot_id()};
  if (job.keeper) row.keeper = {job.keeper->pid(), job.keeper->start_ticks};
  return parts_.store->save_job(row);
}

void Jobs::save_or_say(const JobEntry& job) {
  if (auto saved = save(job); !saved) {
    log::error("cannot store how a job goes, going on",
               {{"job", job.spec.name}, {"error", saved.error().message}});
  }
}

Result<void> Jobs::restore() {
  if (parts_.store == nullptr) return {};
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredJob> jobs, parts_.store->load_jobs());
  std::vector<std::uint64_t> rebooted;
  for (const ports::StoredJob& stored : jobs) take_up(stored, rebooted);
  start_after_boot(rebooted);
  return {};
}

void Jobs::take_up(const ports::StoredJob& stored, std::vector<std::uint64_t>& rebooted) {
  auto spec = jobs::decode_spec(stored.spec);
  auto state = jobs::decode_state(stored.state);
  if (!spec || !state) {
    log::error("a stored job cannot be read, ignoring it", {{"id", stored.id}});
    return;
  }
  const jobs::Policy policy = policy_of(*spec);
  const bool ran = state->phase == jobs::Phase::kRunning || state->phase == jobs::Phase::kStopping;
  const auto [it, added] =
      entries_.emplace(stored.id, JobEntry{stored.id,
                                           stored.uid,
                                           stored.user,
                                           std::move(*spec),
                                           jobs::Supervision(policy, std::move(*state)),
                                           {},
                                           false,
                                           nullptr});
  JobEntry& job = it->second;
  const std::uint64_t id = job.id;
  // The lock tells who keeps it, also where the last daemon was killed before it wrote that down.
  const auto holder = launcher_.holder(id);
  jobs::ObservedRun observed{parts_.processes.boot_id(), {}, false, "", false};
  jobs::RecordedRun recorded{0, 0, stored.boot_id, ""};
  if (holder) {
    if (const auto info = parts_.processes.read_info(*holder)) {
      observed.start_ticks = info->start_ticks;
      recorded.pid = *holder;
      recorded.start_ticks = stored.keeper && stored.keeper->pid == *holder
                                 ? stored.keeper->start_ticks
                                 : info->start_ticks;
    }
  }
  const jobs::Adoption verdict = jobs::judge(recorded, observed);
  if (verdict == jobs::Adoption::kRebooted) {
    rebooted.push_back(id);
    return;
  }
  if (verdict == jobs::Adoption::kRunning) {
    auto keeper =
        track(parts_.processes, *holder, std::nullopt, [this, id] { on_keeper_death(id); });
    if (keeper) job.keeper = std::move(*keeper);
    log::info("job taken up", {{"job", job.spec.name}, {"uid", job.uid}});
  }
  if (ran && !job.keeper) return on_keeper_death(id);
  carry_out(job, job.life.on_adopted(now()));
  settle(id);
}

void Jobs::start_after_boot(const std::vector<std::uint64_t>& rebooted) {
  std::vector<jobs::Ordered> order;
  for (const std::uint64_t id : rebooted) {
    const JobEntry& job = entries_.at(id);
    const auto qualified = [&job](const std::string& name) {
      return fmt::format("{}/{}", job.uid, name);
    };
    jobs::Ordered ordered{qualified(job.spec.name), {}};
    for (const std::string& name : job.spec.after) ordered.after.push_back(qualified(name));
    order.push_back(std::move(ordered));
  }
  auto sorted = jobs::start_order(order);
  if (!sorted) {
    log::warn("jobs wait for each other, starting them as they were added",
              {{"error", sorted.error().message}});
    sorted.emplace();
    for (std::size_t i = 0; i < rebooted.size(); ++i) sorted->push_back(i);
  }
  for (const std::size_t index : *sorted) {
    JobEntry& job = entries_.at(rebooted[index]);
    carry_out(job, job.life.on_boot(now()));
    settle(rebooted[index]);
  }
}

}  // namespace gpurota::daemon
