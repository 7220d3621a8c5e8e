#include "daemon/leases/lease_processes.h"

#include "base/log.h"

#include <algorithm>
#include <csignal>
#include <unordered_map>

namespace gpurota::daemon {
namespace {

bool is_engine(const std::string& executable) {
  return executable.ends_with("/conmon") || executable.ends_with("/podman");
}

}  // namespace

void LeaseProcesses::set_root(const std::optional<ports::ProcessId>& root, std::string cgroup,
                              const std::optional<ports::ProcessId>& reaper) {
  follow_ = true;
  cgroup_ = std::move(cgroup);
  reaper_.reset();
  if (reaper) {
    if (auto tracked = track(processes_, *reaper, nullptr)) reaper_ = std::move(*tracked);
  }
  if (root) (void)see(*root);
}

void LeaseProcesses::leave_cgroup() {
  clean_up();
  cgroup_.clear();
}

// Each process that is held costs its user a descriptor. While processes are only added one by one,
// nothing else drops those that have ended, so this function does, now and then.
Result<void> LeaseProcesses::add(const ports::ProcessId& process) {
  if (seen_.size() >= tidy_at_) {
    drop_dead();
    tidy_at_ = std::max(2 * seen_.size(), kTidyAt);
  }
  return see(process);
}

Result<void> LeaseProcesses::see(const ports::ProcessId& process) {
  const auto it = seen_.find(process.pid);
  if (it != seen_.end() && it->second.alive()) return {};
  auto tracked = track(processes_, process, nullptr);
  if (tracked) {
    seen_.insert_or_assign(process.pid, std::move(*tracked));
    killed_ = false;
    return {};
  }
  if (is_gone(tracked.error())) return {};
  missed_ = true;
  return tl::unexpected<Error>(std::move(tracked).error());
}

void LeaseProcesses::drop_dead() {
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.alive(); });
}

void LeaseProcesses::miss_unless_gone(const Error& why) { missed_ |= !is_gone(why); }

bool LeaseProcesses::all_ended() {
  refresh();
  return seen_.empty() && !missed_;
}

void LeaseProcesses::refresh() {
  missed_ = false;
  drop_dead();
  // Until the first process has arrived in the group, no process there is known to be in the lease.
  if (moves_) return;
  if (!cgroup_.empty()) return see_members();
  if (follow_) see_descendants();
}

// A pid that a cgroup lists may belong to another process by the time the pid is looked up. So a
// process counts only if it is in the group after the look-up.
void LeaseProcesses::see_members() {
  const auto members = processes_.cgroups().members(cgroup_);
  if (!members) return miss_unless_gone(members.error());
  for (const pid_t pid : *members) {
    if (seen_.contains(pid)) continue;
    const auto info = processes_.read_info(pid);
    if (!info) miss_unless_gone(info.error());
    if (!info || info->zombie || !ports::is_in_cgroup(processes_.cgroups().of(pid), cgroup_))
      continue;
    (void)see(info->id());
  }
}

// A parent that is still alive after all processes were read had its pid all the time, so the
// children found by that pid are its own.
void LeaseProcesses::see_descendants() {
  std::unordered_multimap<pid_t, ports::ProcessId> children;
  const auto all = processes_.read_all();
  if (!all) return miss_unless_gone(all.error());
  for (const ports::ProcessInfo& process : *all) {
    if (!process.zombie) children.emplace(process.parent, process.id());
  }
  std::vector<pid_t> open;
  for (const auto& [pid, tracked] : seen_) {
    if (tracked.alive()) open.push_back(pid);
  }
  if (reaper_ && reaper_->alive()) open.push_back(reaper_->pid());
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      if (seen_.contains(it->second.pid)) continue;
      (void)see(it->second);
      const auto found = seen_.find(it->second.pid);
      if (found != seen_.end() && found->second.alive()) open.push_back(found->first);
    }
  }
}

std::vector<pid_t> LeaseProcesses::list() {
  refresh();
  std::vector<pid_t> pids;
  for (const auto& [pid, tracked] : seen_) pids.push_back(pid);
  return pids;
}

int LeaseProcesses::count_left() {
  refresh();
  return static_cast<int>(std::count_if(seen_.begin(), seen_.end(), [&](const auto& entry) {
    return entry.second.alive() && !is_engine(processes_.executable_of(entry.first));
  }));
}

bool LeaseProcesses::signal_all(int signal) {
  bool all = true;
  for (const auto& [pid, tracked] : seen_) all = signal_one(pid, tracked, signal) && all;
  return all;
}

bool LeaseProcesses::signal_one(pid_t pid, const TrackedProcess& process, int signal) {
  const auto sent = process.handle->send_signal(signal);
  if (!sent) {
    log::warn("cannot signal a process of a lease, ignoring",
              {{"pid", pid}, {"error", sent.error().message}});
  }
  return sent.has_value();
}

void LeaseProcesses::ask_to_end() {
  refresh();
  (void)signal_all(SIGTERM);
  (void)signal_all(SIGCONT);
}

int LeaseProcesses::warn(int signal) {
  refresh();
  int warned = 0;
  for (const auto& [pid, tracked] : seen_) {
    if (!processes_.handles_signal(pid, signal)) continue;
    (void)signal_one(pid, tracked, signal);
    ++warned;
  }
  return warned;
}

void LeaseProcesses::kill() {
  if (!cgroup_.empty() && !moves_) {
    if (auto killed = processes_.cgroups().kill(cgroup_); !killed) {
      log::warn("cannot kill a lease's cgroup, killing one by one",
                {{"error", killed.error().message}});
    }
  }
  refresh();
  killed_ = signal_all(SIGKILL);
}

bool LeaseProcesses::kill_all_but_engine() {
  refresh();
  bool any = false;
  for (const auto& [pid, tracked] : seen_) {
    if (is_engine(processes_.executable_of(pid))) {
      any = true;
    } else {
      (void)signal_one(pid, tracked, SIGKILL);
    }
  }
  return any;
}

void LeaseProcesses::clean_up() {
  if (cgroup_.empty()) return;
  processes_.cgroups().remove(cgroup_, [](const Result<void>& removed) {
    if (removed) return;
    log::warn("cannot remove a lease's cgroup, ignoring", {{"error", removed.error().message}});
  });
}

}  // namespace gpurota::daemon
