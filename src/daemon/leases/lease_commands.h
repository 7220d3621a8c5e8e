// Commands that run under a reservation (`gpurota run --lease`): each has its own first process,
// its own gpurota run that holds it, and its own end; the reservation goes on without it. Used by
// LeaseManager; state thread only.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "core/time.h"
#include "daemon/leases/lease_tables.h"
#include "ports/store.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

struct LeaseHooks;

// So many at once under one reservation.
constexpr std::size_t kMaxCommandsPerLease = 256;

struct CommandStart {
  pid_t pid = 0;            // a child of the caller that has not executed anything yet
  ports::ProcessId caller;  // its gpurota run
  bool subreaper = false;
  std::optional<std::chrono::milliseconds> lasts;  // enforced
};

class LeaseCommands {
 public:
  // All outlive it.
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    LeaseTables& tables;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    const LeaseHooks& hooks;
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
