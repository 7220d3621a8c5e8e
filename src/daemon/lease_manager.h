// The leases: made, kept, ended. State thread only.
//
// A lease is in the store before its user hears of it, and leaves the store after its memory is back,
// so neither a kill -9 of the daemon nor one of the program loses or doubles anything.
//
//   acquire ──► active ──► ending ──────────────────► gone
//               start       command ended, released,    no process lives and NVML counts no memory
//               update      holder died                 of it any more
#pragma once

#include "config/config.h"
#include "core/lease.h"
#include "daemon/attribution.h"
#include "daemon/gpu_table.h"
#include "daemon/lease_processes.h"
#include "lease/allowance.h"
#include "lease/grant_book.h"
#include "lease/placement.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/store.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

enum class EndCause { kFinished, kReleased, kLost };

struct LeaseEntry {
  explicit LeaseEntry(ports::Processes& processes) : members(processes) {}

  Lease lease;
  std::string token;                     // GPUROTA_TOKEN_CHARS hex digits
  std::optional<TrackedProcess> holder;  // who asked: gpurota run
  std::optional<TrackedProcess> main;    // the command's first process; set by start
  // Held by the processes that use it, not by a command: automatic_leases.h. `main` is its holder.
  bool automatic = false;
  bool subreaper = false;  // the holder collects what loses its parent
  LeaseProcesses members;
  std::optional<EndCause> cause;       // set while ending
  std::string reason;                  // for people
  std::set<GpuUuid> above_soft_limit;  // where that has been said already
  TimePoint kill_at{};
  TimePoint give_up_at{};  // no longer wait for NVML
  bool killed = false;
  ports::EventLoop::SourcePtr timer;
};

struct AcquireRequest {
  uid_t uid = 0;
  pid_t pid = 0;           // becomes the holder
  bool automatic = false;  // it is also the lease's first process; nobody will call start
  lease::PlacementRequest placement;
  std::string note;
  std::vector<std::string> command;
};

struct UpdateRequest {
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
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
  };

  explicit LeaseManager(Parts parts) : parts_(std::move(parts)) {}

  // Takes up what the last daemon left: leases whose command or holder still runs go on, the others
  // end. Once, before anything else.
  Result<void> restore();

  tl::expected<const LeaseEntry*, lease::Refusal> acquire(const AcquireRequest& request);
  // `pid` must be a child of the holder, of the lease's user, and not have executed anything yet.
  // Returns the cgroup, or nothing where processes are followed by pidfds.
  Result<std::optional<std::string>> start(LeaseId id, pid_t pid, bool subreaper);
  // Wipes nothing: the processes get SIGTERM, after the grace SIGKILL. Again while ending: nothing.
  void end(LeaseId id, EndCause cause, const std::string& reason);
  Result<void> update(LeaseId id, const UpdateRequest& request);
  // The connection that acquired it closed before start: nobody will start it.
  void abandon(LeaseId id);

  // A process of the lease has died: an automatic lease ends with the last one.
  void on_process_death(LeaseId id);
  // A tenant was believed to belong to the lease.
  void add_process(LeaseId id, pid_t pid);
  // Call after each look at a GPU.
  void check_endings();
  // Says once when a lease gets above its soft limit, and again after it was below.
  void check_soft_limits(const GpuUuid& gpu);
  // Call now and then: follows descendants where there is no cgroup.
  void follow_processes();

  const std::map<LeaseId, LeaseEntry>& entries() const { return entries_; }
  const LeaseEntry* find(LeaseId id) const;
  // The GPUs as placement sees them.
  std::vector<lease::GpuRoom> rooms() const;
  // Bytes that processes of no lease hold on a GPU, from the last look.
  void set_unreserved_use(const GpuUuid& gpu, Bytes used) { unreserved_[gpu] = used; }
  Bytes unreserved_use(const GpuUuid& gpu) const;

  std::optional<LeaseId> lease_of_cgroup(const std::string& cgroup) const override;
  std::optional<LeaseId> lease_of_process(pid_t pid) const override;

 private:
  Result<void> save(const LeaseEntry& entry);
  // Whether the user may have this too, by what they have already.
  Result<void> check_user_limit(uid_t uid, const lease::Asking& asked) const;
  void restore_one(const ports::StoredLease& stored, const std::string& boot_id);
  void watch_endings(LeaseEntry& entry);
  void step_ending(LeaseId id);
  void finish(LeaseId id);
  std::function<void()> on_main_death(LeaseId id);
  std::function<void()> on_holder_death(LeaseId id);

  Parts parts_;
  std::map<LeaseId, LeaseEntry> entries_;
  std::map<GpuUuid, Bytes> unreserved_;
};

}  // namespace gpurota::daemon
