#include "daemon/lease_processes.h"

#include "base/log.h"

#include <csignal>
#include <unordered_map>

namespace gpurota::daemon {

void LeaseProcesses::set_root(pid_t root, std::string cgroup, pid_t reaper) {
  follow_ = true;
  cgroup_ = std::move(cgroup);
  reaper_ = reaper;
  see(root);
}

void LeaseProcesses::add(pid_t pid) { see(pid); }

void LeaseProcesses::see(pid_t pid) {
  const auto it = seen_.find(pid);
  if (it != seen_.end() && it->second.alive()) return;
  if (auto tracked = track(processes_, pid, std::nullopt, nullptr)) {
    seen_.insert_or_assign(pid, std::move(*tracked));
  }
}

void LeaseProcesses::refresh() {
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.alive(); });
  if (!cgroup_.empty()) {
    for (const pid_t pid : processes_.cgroup_members(cgroup_)) see(pid);
    return;
  }
  if (!follow_) return;
  std::unordered_multimap<pid_t, pid_t> children;
  for (const ports::ProcessInfo& process : processes_.read_all()) {
    if (!process.zombie) children.emplace(process.parent, process.pid);
  }
  std::vector<pid_t> open;
  for (const auto& [pid, tracked] : seen_) open.push_back(pid);
  if (reaper_ != 0) open.push_back(reaper_);
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      if (seen_.contains(it->second)) continue;
      see(it->second);
      open.push_back(it->second);
    }
  }
}

std::vector<pid_t> LeaseProcesses::list() {
  refresh();
  std::vector<pid_t> pids;
  for (const auto& [pid, tracked] : seen_) pids.push_back(pid);
  return pids;
}

void LeaseProcesses::signal_all(int signal) {
  for (const auto& [pid, tracked] : seen_) {
    if (auto sent = tracked.handle->send_signal(signal); !sent) {
      log::warn("cannot signal a process of a lease, ignoring",
                {{"pid", pid}, {"error", sent.error().message}});
    }
  }
}

void LeaseProcesses::ask_to_end() {
  refresh();
  signal_all(SIGTERM);
  signal_all(SIGCONT);
}

void LeaseProcesses::kill() {
  if (!cgroup_.empty()) {
    if (auto killed = processes_.kill_cgroup(cgroup_); !killed) {
      log::warn("cannot kill a lease's cgroup, killing one by one",
                {{"error", killed.error().message}});
    }
  }
  refresh();
  signal_all(SIGKILL);
}

void LeaseProcesses::clean_up() {
  if (cgroup_.empty()) return;
  if (auto removed = processes_.remove_cgroup(cgroup_); !removed) {
    log::warn("cannot remove a lease's cgroup, ignoring", {{"error", removed.error().message}});
  }
}

}  // namespace gpurota::daemon
