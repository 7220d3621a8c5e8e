// Keeps track of which lease has the turn on each GPU. Connects the scheduler of sched/turns.h to
// the rest of the daemon: settings, leases, the clock, and reports of troubles. State thread only.
//
// Events come from SwapTenants, which also carries out the actions. TurnKeeper is the one place
// that knows what slices leave of a GPU for turns, and what turns leave for slices. The state of
// turns is not stored: leases are stored, and tenants report what they have when they connect to a
// new daemon.
#pragma once

#include "config/config.h"
#include "core/lease.h"
#include "core/user_limits.h"
#include "daemon/gpus/gpu_settings.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/history/series_keeper.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_entry.h"
#include "daemon/leases/owners.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/users/users.h"
#include "ports/event_loop.h"
#include "ports/process_id.h"
#include "sched/turns.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpurota::daemon {

class LeaseManager;
class Recorder;
class SwapTenants;

class TurnKeeper final : public TurnNeeds {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    const GpuTable& gpus;
    const GpuStates& states;
    const LeaseTables& tables;
    LeaseManager& leases;
    Recorder& recorder;
    const Users& users;
    Owners& owners;
    std::function<void()> on_change;  // after each change of turns
  };

  explicit TurnKeeper(Parts parts) : parts_(std::move(parts)) {}
  // No action is carried out before this call. `tenants` must outlive the TurnKeeper.
  void set_tenants(SwapTenants& tenants) { tenants_ = &tenants; }

  // Brings the settings of each GPU up to date. Call it after GPUs were found, the configuration
  // was read, a GPU was set, or a slice was made or has gone.
  void refresh();
  // Whether these settings could take effect for the GPU with its present leases; changes nothing.
  Result<void> check(const GpuInfo& gpu, const GpuSettings& settings) const;

  // Whether the lease can be made. An error: a swap lease could never be resident beside the wired
  // memory of others, or host memory has no room for its oversize part.
  Result<void> check_new(const Lease& lease) const;
  // Takes over the leases of the last daemon. Call once, at the start. If one of them is a swap
  // lease, nothing is decided before `until`: neither turns nor requests for memory.
  void restore(TimePoint until);
  void on_lease_change(const LeaseEntry& entry, bool gone);
  // Whether the process may have been a tenant of the lease under the last daemon: both are older
  // than this daemon.
  bool may_have_known(LeaseId lease, const ports::ProcessId& process) const;

  // Moves a filler, or a lease that leaves for a booking, to host memory, or lets it return
  // (sched/turns.h).
  void set_aside(LeaseId lease, bool aside);
  // The memory that stays on a swap lease's GPUs when set_aside() moves the lease to host memory.
  // Empty: host memory has no room.
  std::optional<LeaseStay> stay_of(LeaseId lease) const;

  void feed(const sched::Event& event);
  // Memory on the GPU held by processes that turns do not know.
  struct Outsiders {
    std::map<pid_t, Bytes> of_leases;  // by processes of swap leases that are not tenants
    Bytes unreserved;                  // by processes in no lease

    Bytes all() const;
    bool operator==(const Outsiders&) const = default;
  };
  void set_outsiders(const GpuUuid& gpu, Outsiders outsiders);
  // The memory of a process among the outsiders. Zero for a process that turns know.
  Bytes seen_of(pid_t pid, const GpuUuid& gpu) const;
  // Stops counting the process as an outsider: it is about to report memory that the last sample
  // has counted already. Call before its report is fed.
  void becomes_tenant(pid_t pid);
  void report(const sched::ReportTrouble& trouble);

  // The memory that turns need of a GPU. Memory of fillers is not included: the part that stays on
  // the GPU is counted at their placement.
  Need need(const GpuUuid& gpu, const std::function<bool(LeaseId)>& counts) const override;
  sched::Holding holding(LeaseId lease, const GpuUuid& gpu) const;
  // The memory on that GPU that counts against the lease's limit, evicted or not, and the part of
  // it that was granted.
  std::pair<Bytes, Bytes> charge(LeaseId lease, const GpuUuid& gpu) const;
  pid_t pid_of(TenantId id) const;
  HostPins pins_of(LeaseId lease) const;
  // The figures of a lease's turns for the series. Empty: the lease takes no turns.
  std::optional<TurnFigures> figures_of(LeaseId lease) const;
  const sched::Turns& turns() const { return turns_; }
  // A count that grows with each possible change.
  std::uint64_t changes() const { return changes_; }
  Bytes host_budget() const;
  Bytes pinned_budget() const;
  // The host memory that oversize leases of a user may have.
  Bytes oversize_of(uid_t uid) const;

 private:
  sched::LeaseTerms terms_of(const Lease& lease) const;
  sched::Settings settings() const;
  Result<void> check_pinned(const Lease& lease) const;
  Bytes slices(const GpuUuid& gpu) const;
  sched::GpuSettings for_turns(const GpuInfo& gpu, const GpuSettings& settings) const;
  void take(const sched::Actions& actions);
  void schedule();
  std::string why_not_moved(TenantId id, const std::string& lease,
                            const std::string& process) const;
  std::string describe(const sched::ReportTrouble& trouble, pid_t pid) const;

  Parts parts_;
  SwapTenants* tenants_ = nullptr;
  sched::Turns turns_;
  std::uint64_t changes_ = 0;
  ports::EventLoop::SourcePtr timer_;
  std::set<LeaseId> restored_;
  std::uint64_t began_ =
      0;  // in ticks since boot, when the leases of the last daemon were taken up
  std::map<GpuUuid, sched::GpuSettings> applied_;
  std::map<GpuUuid, Outsiders> outsiders_;  // of the last sample
  std::map<std::tuple<sched::Trouble, LeaseId, GpuUuid>, TimePoint> told_;
};

}  // namespace gpurota::daemon
