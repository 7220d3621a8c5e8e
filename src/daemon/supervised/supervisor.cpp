#include "daemon/supervised/supervisor.h"

#include "base/log.h"
#include "jobs/log_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace gpurota::daemon {

Supervisor::Supervisor(Parts parts, ports::ProgramKind kind, const std::string& directory,
                       Policy& policy)
    : parts_(std::move(parts)),
      kind_(kind),
      policy_(policy),
      launcher_(directory, parts_.keeper, parts_.systemd_run, what_) {}

Result<void> Supervisor::check_owner(uid_t uid) const {
  if (parts_.store == nullptr || parts_.keeper.empty() || parts_.gpurota.empty()) {
    return fail(
        Code::kUnavailable,
        fmt::format(
            "this daemon has no {}s: gpurota-keeper is not beside it (it is not in a container)",
            what_));
  }
  if (parts_.own_uid != 0 && uid != parts_.own_uid) {
    return fail(Code::kDenied,
                fmt::format("this daemon runs as uid {} and cannot run a {} of another user",
                            parts_.own_uid, what_));
  }
  if (parts_.own_uid == 0 && parts_.processes.user_name(uid) == std::to_string(uid)) {
    return fail(Code::kUnavailable,
                fmt::format("there is no account with uid {}, so no {} can run for it; if the user "
                            "database did not answer, try again later",
                            uid, what_));
  }
  return {};
}

Result<void> Supervisor::check_logs(uid_t uid, std::uint64_t freed, std::uint64_t added) const {
  const std::uint64_t used = parts_.budgets.used(uid, Budget::kJobLogs);
  const std::uint64_t most = parts_.budgets.most(uid, Budget::kJobLogs);
  const std::uint64_t bytes = used - freed + added;
  if (bytes <= std::max(used, most)) return {};
  return fail(
      Code::kLimit,
      fmt::format(
          "the output of your jobs and fillers could take {}, and the site allows {} "
          "for each user (job_log_size_per_user): remove some, or send the output of jobs to "
          "the journal (--output journal)",
          to_string(Bytes(bytes)), to_string(Bytes(most))));
}

void Supervisor::count_logs(Supervised& entry, Bytes logs) const {
  entry.log = parts_.budgets.charge(entry.uid, Budget::kJobLogs, logs.count());
}

Result<TrackedProcess> Supervisor::watch(std::uint64_t run, pid_t keeper) {
  return track_number(parts_.processes, keeper, [this, run] { on_keeper_death(run); });
}

Result<void> Supervisor::launch(std::uint64_t run, const Supervised& entry,
                                const jobs::JobSpec& spec, Bytes log) {
  const bool ours = parts_.systemd_run.empty();
  const std::string cgroup = ours ? cgroups_.name(fmt::format("{}-{}", what_, run)) : "";
  GPUROTA_ASSIGN_OR_RETURN(
      const pid_t pid,
      launcher_.start(run, {entry.uid, entry.user, parts_.gpurota, parts_.runtime_dir, spec, log},
                      cgroup));
  cgroups_.note(pid, cgroup);
  Run& started = runs_[run];
  started.starting = !ours;
  auto keeper = watch(run, pid);
  if (keeper) {
    started.keeper = std::move(*keeper);
    return {};
  }
  // End the keeper, as its end would not be noticed. The pid is still the keeper's, as the keeper
  // is a child that has not been collected.
  log::warn("a keeper cannot be watched, ending it",
            {{"of", what_}, {"name", entry.spec.name}, {"error", keeper.error().message}});
  (void)::kill(pid, SIGKILL);
  parts_.loop.post([this, run, pid] {
    launcher_.collect(pid);
    on_keeper_death(run);
  });
  return {};
}

Result<bool> Supervisor::adopt(std::uint64_t run) {
  GPUROTA_ASSIGN_OR_RETURN(const auto holder, launcher_.find_holder(run));
  if (!holder) return false;
  GPUROTA_ASSIGN_OR_RETURN(auto keeper, unless_gone(watch(run, *holder)));
  if (!keeper || !launcher_.is_held_by(run, *holder)) return false;
  Run& adopted = runs_[run];
  adopted.keeper = std::move(*keeper);
  adopted.starting = false;
  cgroups_.take_up(*holder);
  return true;
}

Result<bool> Supervisor::take_up(std::uint64_t run) {
  GPUROTA_ASSIGN_OR_RETURN(const bool on, adopt(run));
  if (on) return true;
  launcher_.withdraw(run);
  return adopt(run);
}

bool Supervisor::is_kept_by(std::uint64_t run, pid_t process) const {
  const auto it = runs_.find(run);
  if (it == runs_.end() || !it->second.keeper) return false;
  const TrackedProcess& keeper = *it->second.keeper;
  if (keeper.pid() == process && keeper.alive()) return true;
  // The keeper may have begun before this daemon hears of it.
  return it->second.starting && launcher_.is_held_by(run, process);
}

void Supervisor::signal(std::uint64_t run, int number) {
  const auto it = runs_.find(run);
  if (it == runs_.end() || !it->second.keeper) return;
  (void)it->second.keeper->handle->send_signal(number);
}

void Supervisor::end(std::uint64_t run) { signal(run, SIGTERM); }

void Supervisor::kill(std::uint64_t run) { signal(run, SIGQUIT); }

void Supervisor::on_keeper_death(std::uint64_t run) {
  const auto it = runs_.find(run);
  if (it == runs_.end()) return;
  // Keep the timer until this function ends, as its callback may be running.
  const auto timer = std::move(it->second.check_again);
  if (const auto keeper = std::exchange(it->second.keeper, {})) {
    launcher_.collect(keeper->pid());
    cgroups_.on_end(keeper->pid());
  }
  const auto handed_over = adopt(run);
  // The keeper may live, which cannot be checked now.
  if (!handed_over) return check_again(run);
  if (*handed_over) return policy_.on_handed_over(run);
  runs_.erase(run);
  policy_.on_over(run);
}

void Supervisor::check_again(std::uint64_t run) {
  runs_[run].check_again =
      parts_.loop.add_timer(parts_.loop.now() + kReadRetryPeriod, ports::Urgency::kHousekeeping,
                            [this, run] { on_keeper_death(run); });
}

// The store comes first: a job that the store still has would come back with the next daemon.
Result<void> Supervisor::remove(const Supervised& entry, const std::vector<std::uint64_t>& runs) {
  GPUROTA_TRY(parts_.store->remove_program(kind_, entry.id));
  for (const std::uint64_t run : runs) {
    if (const auto gone = launcher_.forget(run); !gone) {
      log::warn("cannot remove what a run left",
                {{"of", what_}, {"run", run}, {"error", gone.error().message}});
    }
  }
  log::info(what_ + " removed", {{"name", entry.spec.name}, {"uid", entry.uid}});
  return {};
}

void Supervisor::settle(const Supervised& entry) {
  // The policy may drop the entry, so its id and name are copied.
  const std::uint64_t id = entry.id;
  const std::string name = entry.spec.name;
  unstored_.note_or_say(id, name, policy_.store(id));
}

void Supervisor::store_again() {
  unstored_.write_again([this](std::uint64_t id) { return unstored_.note(id, policy_.store(id)); });
}

Result<void> Supervisor::check_stored(std::uint64_t id, const std::string& name) const {
  return unstored_.heard_of(id, name);
}

}  // namespace gpurota::daemon
