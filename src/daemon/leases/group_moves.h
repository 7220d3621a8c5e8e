// Moves the first process of each command into the control group of its lease. The kernel takes up
// to tens of milliseconds for a move (it waits for a grace period of RCU), so the daemon's thread
// does not wait for it. Only the client that starts the command waits: the process executes nothing
// before the client has the answer. Used by LeaseManager and LeaseCommands; state thread only.
#pragma once

#include "daemon/leases/lease_tables.h"
#include "ports/processes.h"
#include "ports/store.h"

#include <functional>

#include <sys/types.h>

namespace gpurota::daemon {

class GroupMoves {
 public:
  // All outlive it.
  struct Parts {
    ports::Store& store;
    ports::Processes& processes;
    LeaseTables& tables;
    // A move has succeeded or failed.
    const std::function<void()>& on_moved;
  };
  explicit GroupMoves(Parts parts) : parts_(std::move(parts)) {}

  // Begins to move `pid`, the first process of a command of this lease, into the group of its
  // LeaseProcesses. If that fails, the command is followed without a group. Does nothing where
  // there is no group, where the move is under way, or where the process is there already.
  void begin(LeaseId lease, pid_t pid);
  // Whether a process of the lease is being moved.
  bool is_under_way(LeaseId lease) const;

 private:
  // The processes of the command whose first process is `pid`; null: there is none.
  LeaseProcesses* find(LeaseId lease, pid_t pid);
  void on_moved(LeaseId lease, pid_t pid, const Result<void>& moved);

  Parts parts_;
};

}  // namespace gpurota::daemon
