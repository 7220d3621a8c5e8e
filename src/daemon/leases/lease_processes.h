// The processes of one lease: who they are and how they are ended. State thread only.
//
// With a cgroup v2 they are its members: nothing escapes it. Without one they are the command's
// descendants, each held by a pidfd from when it was first seen, and the children that a subreaper
// (gpurota run is one) has collected. Without a root they are those that were added, and no others.
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

  // `root` is the command's first process, if it lives. `cgroup` is empty where there is none;
  // `reaper` is then the subreaper whose children all belong to the lease, if there is one.
  void set_root(const std::optional<ports::ProcessId>& root, std::string cgroup,
                const std::optional<ports::ProcessId>& reaper);
  // A process that said so itself and was believed (a tenant). An error if it lives and cannot be
  // held.
  Result<void> add(const ports::ProcessId& process);

  const std::string& cgroup() const { return cgroup_; }
  std::optional<std::string> own_cgroup() const {
    return cgroup_.empty() ? std::nullopt : std::optional(cgroup_);
  }
  bool contains(const ports::ProcessId& process) const {
    const auto it = seen_.find(process.pid);
    return it != seen_.end() && it->second.id == process;
  }

  // Looks again; call now and then while there is no cgroup, so that nobody leaves unseen.
  void refresh();
  // Living ones, as of now, that could be looked at.
  std::vector<pid_t> list();
  // Of them, those that are not of a container engine, which ends by itself after its container.
  int count_left();
  // Looks again. False also where it cannot be told: who cannot be looked at may live.
  bool all_ended();
  // SIGTERM and SIGCONT, so that the stopped ones get it too. Those of the holder are spared.
  void ask_to_end();
  // Those that handle the signal, which would end others: to how many it was sent.
  int warn(int signal);
  void kill();
  // Whether the last kill() has reached all of those that live: they run no more of their programs,
  // however long the kernel keeps them. False where somebody could not be seen since.
  bool all_killed() const { return killed_ && !missed_; }
  // Those of podman are spared: whether there are any.
  bool kill_all_but_engine();
  // After the last has ended.
  void clean_up();

 private:
  Result<void> see(const ports::ProcessId& process);
  void drop_dead();
  void miss_unless_gone(const Error& why);
  void see_members();
  void see_descendants();
  // False: somebody was not reached.
  bool signal_all(int signal);
  bool signal_one(pid_t pid, const TrackedProcess& process, int signal);

  ports::Processes& processes_;
  std::string cgroup_;
  bool follow_ = false;  // descendants: there is a root
  bool missed_ = false;  // somebody may live whom the last look could not see
  bool killed_ = false;  // all in seen_, by kill()
  std::optional<TrackedProcess> reaper_;
  std::map<pid_t, TrackedProcess> seen_;
  static constexpr std::size_t kTidyAt = 64;
  std::size_t tidy_at_ = kTidyAt;  // when so many are seen, the dead among them are let go
};

}  // namespace gpurota::daemon
