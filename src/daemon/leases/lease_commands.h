// Commands that run under a reservation (`gpurota run --lease`): each has its own first process,
// its own gpurota run that holds it, and its own end; the reservation continues without it. Used by
// LeaseManager; state thread only.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "core/time.h"
#include "daemon/leases/group_moves.h"
#include "daemon/leases/lease_tables.h"
#include "ports/store.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

struct LeaseHooks;

// The most commands at a time under one reservation.
constexpr std::size_t kMaxCommandsPerLease = 256;

struct CommandStart {
  pid_t pid = 0;            // a child of the caller that has not executed anything yet
  ports::ProcessId caller;  // its gpurota run
  bool subreaper = false;
  std::optional<std::chrono::milliseconds> lasts;  // enforced
};

class LeaseCommands {
 public:
  // All must outlive the LeaseCommands.
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    LeaseTables& tables;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    const LeaseHooks& hooks;
    GroupMoves& moves;
  };

  explicit LeaseCommands(Parts parts) : parts_(std::move(parts)) {}

  // Starts one more command, which `start.caller` holds. Returns the cgroup, if there is one.
  Result<std::optional<std::string>> start(LeaseEntry& entry, const CommandStart& start);
  // Sends SIGTERM, and SIGKILL after the grace. Does nothing for a command that is ending already.
  void stop(LeaseId lease, pid_t pid, const std::string& why);
  // Takes up the commands that the last daemon left under this lease. The lease need not be in the
  // table yet. An error if it is not known which processes are alive.
  Result<void> restore(LeaseEntry& entry, const ports::StoredLease& stored);

 private:
  LeaseCommand* find(LeaseId lease, pid_t pid);
  void follow(LeaseId lease, LeaseCommand& command);
  void step(LeaseId lease, pid_t pid);

  Parts parts_;
};

}  // namespace gpurota::daemon
