// Commands that run under a reservation (`gpurota run --lease`): each has its own first process,
// its own gpurota run that holds it, and its own end; the reservation goes on without it. State
// thread only; LeaseManager calls it.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "core/time.h"
#include "daemon/leases/lease_processes.h"
#include "daemon/leases/tracked_process.h"
#include "ports/store.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

class LeaseManager;
struct LeaseEntry;

// So many at once under one reservation.
constexpr std::size_t kMaxCommandsPerLease = 256;

struct CommandStart {
  pid_t pid = 0;            // a child of the caller that has not executed anything yet
  ports::ProcessId caller;  // its gpurota run
  bool subreaper = false;
  std::optional<std::chrono::milliseconds> lasts;  // enforced
};

struct LeaseCommand {
  explicit LeaseCommand(ports::Processes& processes) : members(processes) {}

  TrackedProcess holder;
  TrackedProcess main;
  LeaseProcesses members;
  std::optional<WallTime> ends;
  bool ending = false;
  TimePoint kill_at{};
  ports::EventLoop::SourcePtr timer;
  ports::EventLoop::SourcePtr expiry;

  ports::StoredCommand stored() const { return {holder.id, main.id, members.cgroup(), ends}; }
};

class LeaseCommands {
 public:
  // All outlive it.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    LeaseManager& leases;
  };

  explicit LeaseCommands(Parts parts) : parts_(std::move(parts)) {}

  // One more; `start.caller` holds it. The cgroup, if there is one.
  Result<std::optional<std::string>> start(LeaseEntry& entry, const CommandStart& start);
  // SIGTERM, after the grace SIGKILL; again while it ends: nothing.
  void stop(LeaseId lease, pid_t pid, const std::string& why);
  // Takes up what the last daemon left under this lease, which need not be among the leases yet. An
  // error where it cannot be told who lives.
  Result<void> restore(LeaseEntry& entry, const ports::StoredLease& stored);

 private:
  LeaseCommand* find(LeaseId lease, pid_t pid);
  void follow(LeaseId lease, LeaseCommand& command);
  void step(LeaseId lease, pid_t pid);

  Parts parts_;
};

}  // namespace gpurota::daemon
