// Makes, keeps and ends leases. State thread only.
//
// A lease is in the store before its user hears of it, and leaves the store after its memory is
// back, so that a kill -9 of the daemon or of the program neither loses nor doubles anything.
//
//   acquire ──► active ──► ending ──────────────────► gone
//               start   │   command ended, released,    no process lives and NVML counts no memory
//               update  │   holder died, time over      of it any more
//                       └► expired ─► (active | ending)
//                          a reservation whose time is over while its programs hold memory: it is
//                          visible, and lives on as the site's policy says
//
// A run lease has one command. A reservation has any number of commands (lease_commands.h), and
// covers everything else that its user runs on its GPUs.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/gpus/samples.h"
#include "daemon/leases/lease_commands.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/leases/unstored.h"
#include "lease/grant_book.h"
#include "lease/request_queue.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/store.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

// The questions of LeaseManager to the rest of the daemon, and its notifications of changes. Called
// on the state thread, once all parts of the daemon are there; none is empty.
struct LeaseHooks {
  // After any change of a lease, and once more with `gone` when the lease has been removed.
  std::function<void(const LeaseEntry& entry, bool gone)> publish;
  // Before a lease is stored: an error refuses it. Changes nothing.
  std::function<Result<void>(const LeaseEntry& entry)> check_new;
  // Whether a lease without processes still holds GPU memory. The lease is removed when this is
  // false.
  std::function<bool(LeaseId lease)> holds_memory;
  // Why the command of this lease has ended, if somebody ended it; nothing: it ended by itself.
  std::function<std::optional<std::string>(const LeaseEntry& entry)> end_of_command;
  // The time from SIGTERM to SIGKILL when the lease ends; nothing: as the configuration says.
  std::function<std::optional<Duration>(const LeaseEntry& entry)> grace_of;
  // The time of a command under a reservation is over. `holder` has started the command.
  std::function<void(const ports::ProcessId& holder, const std::string& why)> on_time_over;
  // Processes that were being moved into a cgroup are there, or cannot be moved.
  std::function<void()> on_moved;
};

class LeaseManager final {
 public:
  // All must outlive the LeaseManager.
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    const GpuTable& gpus;
    GpuStates& states;
    lease::GrantBook& grants;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    std::function<std::string()> make_token;
    Samples& samples;  // of the GPUs of a lease that ends
    LeaseHooks hooks;
  };

  LeaseManager(LeaseTables& tables, Parts parts) : tables_(tables), parts_(std::move(parts)) {}

  // Takes over the leases of the last daemon: leases whose command or holder still runs continue,
  // all others end. Call once, before anything else.
  Result<void> restore();

  // Makes a lease on these GPUs, which Queue or Bookings has chosen. `waited`: the request or
  // booking that becomes this lease; it leaves the store in the same transaction.
  tl::expected<const LeaseEntry*, lease::Refusal> make(const AcquireRequest& request,
                                                       std::vector<LeaseGpu> gpus,
                                                       std::optional<RequestId> waited);
  // `number`: the pid of the command's first process, as the holder sees it. The process must be a
  // child of the holder, belong to the lease's user, and not have executed anything yet. Returns
  // the cgroup, if there is one.
  Result<std::optional<std::string>> start(LeaseId id, pid_t number, bool subreaper);
  // Starts one more command under a reservation. `start.caller` holds the command, and sees its
  // first process as `start.pid`.
  Result<std::optional<std::string>> start_command(LeaseId id, const CommandStart& start);
  // Whether the first process of a command is still on its way into the cgroup. Ask after start()
  // or start_command(). When LeaseHooks::on_moved has been called, call the same function again:
  // the cgroup that it returns is then final.
  bool is_moving(LeaseId id) const { return moves_.is_under_way(id); }
  // Ends the lease: its processes get SIGTERM, and SIGKILL after the grace. A second call only
  // stores the end, if storing it has failed before.
  void end(LeaseId id, EndCause cause, const std::string& reason,
           std::optional<Author> by = std::nullopt);
  // An error if the end of the lease could not be stored: if this daemon is killed before there is
  // room, the next daemon takes over the lease.
  Result<void> heard_of_end(LeaseId id) const;
  // Replaces the lease's limits, note, end and turns; all were checked by lease_update.h.
  Result<void> change(Lease changed, std::optional<Author> by = std::nullopt);
  // The connection that acquired the lease closed before start: nobody will start its command.
  void abandon(LeaseId id);

  // A process of the lease has died: an automatic lease ends with the last one.
  void on_process_death(LeaseId id);
  // Adds a process that was found to belong to the lease, and its container with it. An error if
  // the process lives and cannot be held (kLimit).
  Result<void> add_process(LeaseId id, const ports::ProcessId& process);
  // Call after each sample of a GPU. Also ends expired reservations that hold nothing any more.
  void check_endings();
  // Adds to a reservation a process that its user started elsewhere.
  void cover(LeaseId id, const ports::ProcessId& process);
  // Whether the lease has a living process, or memory on a GPU, as of now.
  bool is_in_use(LeaseId id);
  // Stores that the processes of the lease are being parked, are parked, or are being brought back.
  // kGone: the lease has ended.
  Result<void> set_park(LeaseId id, ParkState state, std::vector<ports::ProcessId> processes);
  // The owner of a lease that was booked uses it: the lease does not end for lack of use.
  Result<void> use(LeaseId id);
  // Call now and then: follows descendants where there is no cgroup.
  void follow_processes();

  // Tests whether the store can be written, and makes up for ends and removals that it could not
  // store before.
  void check_store();

 private:
  Result<void> save(const LeaseEntry& entry);
  void on_holder_death(LeaseId id);
  Result<void> save_end(LeaseId id);
  Result<void> restore_one(const ports::StoredLease& stored, const std::string& boot_id);
  void watch_endings(LeaseEntry& entry);
  void step_ending(LeaseId id);
  void finish(LeaseId id);
  bool holds_memory(LeaseId id) const;
  bool memory_is_back(LeaseEntry& entry) const;
  void arm_expiry(LeaseEntry& entry);
  void on_expiry(LeaseId id);

  LeaseTables& tables_;
  Parts parts_;
  GroupMoves moves_{{parts_.store, parts_.processes, tables_, parts_.hooks.on_moved}};
  LeaseCommands commands_{{parts_.loop, parts_.store, parts_.processes, tables_, parts_.config,
                           parts_.wall_clock, parts_.hooks, moves_}};
  Unstored unstored_ends_{"lease"};
  std::set<LeaseId> unremoved_;  // ended, but still in the store: a reservation would come back
  TimePoint settled_at_{};       // after a restart: when all uses are known
};

}  // namespace gpurota::daemon
