// The leases: made, kept, ended. State thread only.
//
// A lease is in the store before its user hears of it, and leaves the store after its memory is back,
// so neither a kill -9 of the daemon nor one of the program loses or doubles anything.
//
//   acquire ──► active ──► ending ──────────────────► gone
//               start   │   command ended, released,    no process lives and NVML counts no memory
//               update  │   holder died, time over      of it any more
//                       └► expired ─► (active | ending)
//                          a reservation whose time is over while its programs hold memory: it is
//                          visible, and lives on as the site's policy says (lease_expiry.cpp)
//
// A run lease has one command; a reservation any number (lease_commands.h), and it covers what else its
// user runs on its GPUs.
#pragma once

#include "config/config.h"
#include "core/lease.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_commands.h"
#include "daemon/leases/lease_processes.h"
#include "daemon/leases/unstored.h"
#include "lease/allowance.h"
#include "lease/grant_book.h"
#include "lease/placement.h"
#include "lease/request_queue.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/store.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::daemon {

enum class EndCause { kFinished, kReleased, kLost, kExpired };

struct LeaseEntry {
  explicit LeaseEntry(ports::Processes& processes) : members(processes), covered(processes) {}

  Lease lease;
  std::string token;                     // GPUROTA_TOKEN_CHARS hex digits
  std::optional<TrackedProcess> holder;  // who asked: gpurota run
  std::optional<TrackedProcess> main;    // the command's first process; set by start
  // Held by the processes that use it, not by a command: automatic_leases.h. `main` is its holder.
  bool automatic = false;
  bool subreaper = false;  // the holder collects what loses its parent
  LeaseProcesses members;
  LeaseProcesses covered;  // of a reservation: its user's other processes on its GPUs
  std::map<pid_t, LeaseCommand> commands;  // of a reservation, by their first process
  std::string ticket;             // of the request it was made for; empty: none waited for it
  std::optional<EndCause> cause;  // set while ending
  std::string reason;             // for people
  TimePoint kill_at{};
  TimePoint give_up_at{};  // no longer wait for NVML
  bool killed = false;
  std::optional<TimePoint> empty_since;  // its last process has ended
  ports::EventLoop::SourcePtr timer;
  ports::EventLoop::SourcePtr expiry;  // at lease.ends
};

struct AcquireRequest {
  uid_t uid = 0;
  ports::ProcessId process{};  // becomes the holder
  bool automatic = false;      // it is also the lease's first process; nobody will call start
  lease::PlacementRequest placement;
  std::string note;
  std::vector<std::string> command;
  LeaseKind kind = LeaseKind::kRun;
  std::optional<std::chrono::milliseconds> lasts{};  // enforced, from when it is made
  std::string as_name{};
  std::string ticket{};
  bool at_once = false;  // waits for nothing but fillers that make way
  int priority = 0;
  std::optional<std::chrono::milliseconds> quantum{};  // as of a Lease
};

struct UpdateRequest {
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::chrono::milliseconds> lasts{};  // from now on
  bool beyond_limits = false;  // an administrator gives more than the site allows the user
  std::optional<int> priority{};
  std::optional<std::chrono::milliseconds> quantum{};  // as of a Lease
};

class LeaseManager final : public LeaseRoots {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    GpuTable& gpus;
    lease::GrantBook& grants;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    std::function<std::string()> make_token;
    // After any change of a lease; `gone` with the last one.
    std::function<void(const LeaseEntry&, bool gone)> on_change;
    // The lease is ending: look at its GPUs soon, and tell memory_is_back when nothing is left.
    std::function<void(const GpuUuid&)> look_soon;
    // Whether the last looks still showed memory of this lease.
    std::function<bool(LeaseId)> holds_memory;
    // What the site allows a user. Empty: the defaults.
    std::function<UserLimits(uid_t)> limits_of = {};
    // What the user asks for in the queue. Empty: nothing.
    std::function<lease::Holding(uid_t)> waiting = {};
    // Which GPUs a lease gets that is made at once, with regard to those who wait. Empty: to nobody.
    std::function<tl::expected<std::vector<LeaseGpu>, lease::Refusal>(const AcquireRequest&)>
        choose = {};
    // GPU time that the user has had since then, ended leases included. Empty: only those there are.
    std::function<std::optional<std::chrono::seconds>(uid_t, WallTime from)> used = {};
    // From SIGTERM to SIGKILL when this lease ends. Empty: what the configuration says.
    std::function<Duration(const LeaseEntry&)> grace_of = {};
    // Whether a swap lease could ever have its turn; it then takes part. Empty: always.
    std::function<Result<void>(const Lease&)> admit_swap = {};
    // Of the user, by how many they make. Empty: always.
    std::function<Result<void>(uid_t)> admit_new = {};
    // What turns need of a GPU: of one lease in its turn with what none can move, and that alone.
    std::function<std::pair<Bytes, Bytes>(const GpuUuid&)> turns_need = {};
    // Of a filler that can be moved out of its GPU. Empty, or nothing: it can only end.
    struct Stay {
      Bytes stays;
      bool moved_out = false;
    };
    std::function<std::optional<Stay>(LeaseId)> stay_of = {};
    // The time of a command under a reservation is over; `holder` has started it.
    std::function<void(const ports::ProcessId& holder, const std::string& why)> on_time_over = {};
  };

  explicit LeaseManager(Parts parts) : parts_(std::move(parts)) {}

  // Takes up what the last daemon left: leases whose command or holder still runs go on, the others end. First, and once.
  Result<void> restore();

  tl::expected<const LeaseEntry*, lease::Refusal> acquire(const AcquireRequest& request);
  // With these GPUs, chosen rightly; for a request that waited, which is then no more.
  tl::expected<const LeaseEntry*, lease::Refusal> make(const AcquireRequest& request,
                                                       std::vector<LeaseGpu> gpus,
                                                       std::optional<RequestId> waited);
  // Whether the user may have this too, by what they have and wait for already.
  Result<void> check_user_limit(const AcquireRequest& request, bool waits) const;
  // One more of them, or of requests: not too many in an hour.
  Result<void> count_new(const AcquireRequest& request) const;
  // As check_user_limit, if they had nothing and waited for nothing.
  Result<void> check_ever_allowed(const AcquireRequest& request) const;
  // `pid` must be a child of the holder, of the lease's user, and not have executed anything yet. Returns the cgroup, if there is one.
  Result<std::optional<std::string>> start(LeaseId id, pid_t pid, bool subreaper);
  // One more command under a reservation; `caller` holds it.
  Result<std::optional<std::string>> start_command(LeaseId id, const CommandStart& start);
  // Wipes nothing: the processes get SIGTERM, after the grace SIGKILL. Again while ending: nothing.
  void end(LeaseId id, EndCause cause, const std::string& reason);
  // Whether the store knows that it ends; an error if not: who is killed before there is room leaves it to the next daemon.
  Result<void> heard_of_end(LeaseId id) const;
  Result<void> update(LeaseId id, const UpdateRequest& request);
  // The connection that acquired it closed before start: nobody will start it.
  void abandon(LeaseId id);

  // A process of the lease has died: an automatic lease ends with the last one.
  void on_process_death(LeaseId id);
  // A tenant was believed to belong to the lease.
  void add_process(LeaseId id, const ports::ProcessId& process);
  // Call after each look at a GPU. Ends what is expired and holds nothing any more, too.
  void check_endings();
  // The reservation that a process of this user on this GPU is in, if it is in no other lease.
  std::optional<LeaseId> reservation_for(uid_t uid, const GpuUuid& gpu) const;
  // That reservation has this process.
  void cover(LeaseId id, const ports::ProcessId& process);
  // Whether a reservation is over for others when its time is.
  bool ends_are_enforced() const {
    return parts_.config.expired_reservation != config::Expired::kKeep;
  }
  // Ends the reservations among these whose time is over, if the policy is to yield.
  void yield_expired(const std::vector<GpuUuid>& gpus, const std::string& to_whom);
  // Call now and then: follows descendants where there is no cgroup.
  void follow_processes();

  const std::map<LeaseId, LeaseEntry>& entries() const { return entries_; }
  const LeaseEntry* find(LeaseId id) const;
  // Why nothing could be stored when that was last tried.
  const std::optional<Error>& store_error() const { return store_error_; }
  // Asks the store by writing what it has already, and takes out of it what could not be before.
  void check_store();
  // The GPUs as placement sees them, and the leases as the queue does.
  std::vector<lease::GpuRoom> rooms() const;
  std::vector<lease::Occupant> occupants() const;
  // Whole GPUs that the user had last.
  std::vector<GpuUuid> last_gpus(uid_t uid) const;
  // No new lease gets a draining GPU. Stored.
  Result<void> set_draining(const GpuUuid& gpu, bool draining, const std::string& reason);
  const ports::StoredGpuState& gpu_state(const GpuUuid& gpu) const;
  // What an administrator has set for it. Stored.
  Result<void> set_gpu(const ports::StoredGpuState& state);
  // What a context takes there with this driver. Stored, if it is new.
  void set_context_cost(const GpuUuid& gpu, Bytes cost, const std::string& driver);
  // Bytes that processes of no lease hold on a GPU, from the last look.
  void set_unreserved_use(const GpuUuid& gpu, Bytes used, std::map<uid_t, Bytes> by = {});
  Bytes unreserved_use(const GpuUuid& gpu) const;

  std::optional<LeaseId> lease_of_cgroup(const std::string& cgroup) const override;
  std::optional<LeaseId> lease_of_process(const ports::ProcessId& process) const override;
  std::uint64_t membership_changes() const override { return membership_changes_; }

 private:
  void add_filler(lease::GpuRoom& room, const LeaseEntry& entry) const;
  // Waiting requests included.
  lease::Holding held_by(uid_t uid, const UserLimits& limits) const;
  lease::Asking asking(const AcquireRequest& request) const;
  Result<void> check_more(const Lease& lease, const Lease& changed) const;
  Result<void> save(const LeaseEntry& entry);
  Result<void> save_end(LeaseId id);
  Result<void> change_gpus(const UpdateRequest& request, Lease& lease) const;
  Result<void> change_turns(const UpdateRequest& request, Lease& lease) const;
  ports::StoredLease row_of(const LeaseEntry& entry) const;
  Result<void> restore_commands(LeaseEntry& entry, const ports::StoredLease& stored);
  Result<void> restore_one(const ports::StoredLease& stored, const std::string& boot_id);
  void watch_endings(LeaseEntry& entry);
  void step_ending(LeaseId id);
  void finish(LeaseId id);
  bool is_alive(LeaseEntry& entry) const;
  bool memory_is_back(LeaseEntry& entry) const;
  void remember_use(const LeaseEntry& entry);
  void follow_command(LeaseId id, LeaseCommand& command);
  void stop_command(LeaseId id, pid_t pid, const std::string& why);
  void step_command(LeaseId id, pid_t pid);
  void arm_expiry(LeaseEntry& entry);
  void on_expiry(LeaseId id);
  std::function<void()> on_main_death(LeaseId id);
  std::function<void()> on_holder_death(LeaseId id);

  Parts parts_;
  std::optional<Error> store_error_;
  std::map<LeaseId, LeaseEntry> entries_;
  std::uint64_t membership_changes_ = 1;
  Unstored unstored_ends_{"lease"};
  std::set<LeaseId> unremoved_;  // gone, but still in the store: a reservation would come back
  std::map<GpuUuid, Bytes> unreserved_;
  std::map<GpuUuid, std::map<uid_t, Bytes>> unreserved_by_;
  std::map<GpuUuid, ports::StoredGpuState> gpu_states_;
  TimePoint settled_at_{};  // after a restart: from when on it is known who uses what
};

}  // namespace gpurota::daemon
