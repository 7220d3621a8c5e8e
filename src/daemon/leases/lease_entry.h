// A lease as the daemon keeps it, and a request for one. State thread only.
#pragma once

#include "core/lease.h"
#include "daemon/leases/lease_processes.h"
#include "daemon/leases/tracked_process.h"
#include "lease/placement.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/store.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::daemon {

// kBooking: a booking of the lease's GPUs is used.
enum class EndCause { kFinished, kReleased, kLost, kExpired, kBooking };

// The user who changes or ends a lease or a request, which may be another user's, and the reason
// that the user gives.
struct Author {
  uid_t uid = 0;
  std::string reason{};  // untrusted bytes; empty: none was given
};

// A command that runs under a reservation (lease_commands.h).
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

struct LeaseEntry {
  explicit LeaseEntry(ports::Processes& processes) : members(processes), covered(processes) {}

  Lease lease;
  std::string token;                     // GPUROTA_TOKEN_CHARS hex digits
  std::optional<TrackedProcess> holder;  // the process that asked: gpurota run
  std::optional<TrackedProcess> main;    // the command's first process; set by start
  // The lease is held by the processes that use it, and not by a command (automatic_leases.h).
  // `main` is the same process as `holder`.
  bool automatic = false;
  bool subreaper = false;  // the holder collects orphaned processes
  // A slice that was made while the site required the driver's limit (enforcement = "driver").
  bool needs_driver_limit = false;
  std::string pod_uid;  // of the only pod that uses it; empty: not known, or none
  // The group of the container that the kubelet of this pod runs in; empty: none, or not known.
  std::string kubelet_container;
  LeaseProcesses members;
  // Containers with a process of the lease, each with the user of that process. The user's other
  // processes in the container are in the lease too, unless they are in another lease.
  std::vector<ports::StoredContainer> containers;
  LeaseProcesses covered;  // of a reservation: its user's other processes on its GPUs
  std::map<pid_t, LeaseCommand> commands;  // under a reservation, by pid of the first process
  std::string ticket;                    // of the request for this lease; empty: no request waited
  std::optional<RequestId> booking;      // the booking that became this lease
  std::optional<WallTime> unused_since;  // when its booking began; empty: used, or not booked
  std::optional<EndCause> cause;         // set while ending
  std::string reason;                    // for people
  // The user who made the change that is being published; of a lease that ends, the user who ended
  // it. Empty: the cause is time, or a rule of the site.
  std::optional<Author> by;
  TimePoint ask_at{};  // when its processes are asked to end
  bool asked = false;
  std::vector<ports::ProcessId> parked;  // unless lease.park is kNone: the processes concerned
  int left_behind = 0;                   // processes that the command left running, asked to end
  TimePoint kill_at{};
  TimePoint give_up_at{};  // when to stop waiting for NVML
  bool killed = false;
  int ending_step = 0;                   // of step_ending(); grows
  TimePoint step_began{};                // when ending_step changed
  int signalled = 0;                     // processes that got the last warning of its end
  std::optional<TimePoint> empty_since;  // its last process has ended
  ports::EventLoop::SourcePtr timer;
  ports::EventLoop::SourcePtr expiry;  // at lease.ends
};

struct AcquireRequest {
  uid_t uid = 0;
  ports::ProcessId process{};  // becomes the holder
  bool automatic = false;      // `process` is also the first process; nobody calls start
  std::optional<ports::StoredContainer>
      container{};  // of automatic: the whole container is to be in the lease
  lease::PlacementRequest placement;
  std::string note;
  std::vector<std::string> command;
  LeaseKind kind = LeaseKind::kRun;
  std::optional<std::chrono::milliseconds> lasts{};  // enforced, from the start of the lease on
  std::string as_name{};
  std::string name{};  // checked; empty: none
  std::string ticket{};
  std::optional<RequestId> booking{};      // the lease is this booking
  std::optional<WallTime> unused_since{};  // nobody has used the booking; empty: it is used
  std::string token{};                     // of a pod's lease; empty: the daemon makes one
  std::string pod_uid{};                   // as in LeaseEntry
  std::string kubelet_container{};         // as in LeaseEntry
  bool at_once = false;                    // waits for nothing but fillers that leave
  int priority = 0;
  std::optional<std::chrono::milliseconds> quantum{};  // as in Lease
  LatencyClass latency = LatencyClass::kNormal;
  EndWarning warning{};
  // Since when a job that left for a booking has been waiting. The request gets its old place in
  // the queue by this time.
  std::optional<WallTime> waits_since{};
};

}  // namespace gpurota::daemon
