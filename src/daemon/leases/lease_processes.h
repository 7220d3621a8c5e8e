// Finds and ends the processes of one lease. State thread only.
//
// With a cgroup v2, the processes are the members of that group, which no process leaves. Without a
// group, the processes are the command's descendants, each held by a pidfd from when it was first
// seen, and the children that a subreaper (gpurota run is one) has collected. Without a root, the
// processes are only those that were added.
#pragma once

#include "daemon/leases/tracked_process.h"
#include "ports/processes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class LeaseProcesses {
 public:
  explicit LeaseProcesses(ports::Processes& processes) : processes_(processes) {}

  // `root` is the command's first process, if it is alive. `cgroup` is empty where there is none;
  // `reaper` is then the subreaper whose children all belong to the lease, if there is one.
  void set_root(const std::optional<ports::ProcessId>& root, std::string cgroup,
                const std::optional<ports::ProcessId>& reaper);
  // Adds a process that says it is in the lease and has been believed (a tenant). An error if the
  // process is alive and cannot be held.
  Result<void> add(const ports::ProcessId& process);

  const std::string& cgroup() const { return cgroup_; }
  std::optional<std::string> own_cgroup() const {
    return cgroup_.empty() ? std::nullopt : std::optional(cgroup_);
  }
  // Whether the first process is being moved into the cgroup (group_moves.h).
  bool moves() const { return moves_; }
  void set_moves(bool moves) { moves_ = moves; }
  // Call if the first process cannot be moved into the cgroup: removes the cgroup if it is empty,
  // and follows the processes without a cgroup from now on.
  void leave_cgroup();
  bool contains(const ports::ProcessId& process) const {
    const auto it = seen_.find(process.pid);
    return it != seen_.end() && it->second.id == process;
  }

  // Finds the processes again. Call now and then while there is no cgroup, so that no process
  // leaves unseen.
  void refresh();
  // The processes that are alive now and could be read.
  std::vector<pid_t> list();
  // How many processes are still alive, without those of a container engine: an engine ends by
  // itself after its container.
  int count_left();
  // Finds the processes again. Also false if a process cannot be read, because that process may be
  // alive.
  bool all_ended();
  // Sends SIGTERM, and SIGCONT so that stopped processes handle it too. The holder's processes are
  // spared.
  void ask_to_end();
  // Sends the signal only to processes that handle it, as it would end any others. Returns their
  // number.
  int warn(int signal);
  void kill();
  // Whether the last kill() has reached all processes that are alive. Processes that it has reached
  // execute no more of their programs, however long the kernel keeps them. False if a process could
  // not be read since.
  bool all_killed() const { return killed_ && !missed_; }
  // Spares the processes of podman. Returns whether there are any.
  bool kill_all_but_engine();
  // Call after the last process has ended.
  void clean_up();

 private:
  Result<void> see(const ports::ProcessId& process);
  void drop_dead();
  void miss_unless_gone(const Error& why);
  void see_members();
  void see_descendants();
  // False: a process was not reached.
  bool signal_all(int signal);
  bool signal_one(pid_t pid, const TrackedProcess& process, int signal);

  ports::Processes& processes_;
  std::string cgroup_;
  bool moves_ = false;
  bool follow_ = false;  // there is a root, whose descendants count
  bool missed_ = false;  // a process may live that refresh() could not read
  bool killed_ = false;  // kill() has reached all in seen_
  std::optional<TrackedProcess> reaper_;
  std::map<pid_t, TrackedProcess> seen_;
  static constexpr std::size_t kTidyAt = 64;
  std::size_t tidy_at_ = kTidyAt;  // the size of seen_ at which the dead are dropped
};

}  // namespace gpurota::daemon
