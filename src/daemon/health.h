// The daemon's report of itself: its health, and the facts that `doctor` examines. State thread
// only.
#pragma once

#include "daemon/control/control_methods.h"
#include "daemon/control/views.h"
#include "daemon/doctor.h"
#include "daemon/gpus/driver_state.h"
#include "daemon/gpus/sampler.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/automatic_leases.h"
#include "daemon/leases/cdi_specs.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/sample_handler.h"
#include "daemon/site_config.h"
#include "daemon/tenants/tenant_table.h"
#include "daemon/users/user_budgets.h"
#include "daemon/watch/driver_limits.h"
#include "daemon/watch/strict_access.h"
#include "daemon/watch/watch_keeper.h"
#include "sys/round_times.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Health final : public DaemonSelf {
 public:
  // All must outlive the Health.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    const SiteConfig& site;
    const Users& users;
    const DriverState& driver;
    const GpuTable& gpus;
    const Sampler& sampler;
    const LeaseTables& tables;
    LeaseManager& leases;
    const Recorder& recorder;
    const UserBudgets& budgets;
    const AutomaticLeases& automatic;
    const CdiSpecs& cdi;
    const TenantTable& tenants;
    const TenantRecords& records;
    const TurnKeeper& turns;
    const WatchKeeper& watch;
    const StrictAccess& strict;
    const DriverLimits& driver_limits;
    const Views& views;
    const SampleHandler& sample_handler;
    const SeriesKeeper& series;
    std::string preload;                                 // libgpurota.so; empty: not found
    std::function<sys::LongestRounds()> longest_rounds;  // of the loop; empty: not reported
  };

  explicit Health(Parts parts) : parts_(std::move(parts)) {}

  void on_start(WallTime now) { since_ = now; }
  // Checks whether the store can write, unless the last check is more recent than `period`. The
  // daemon thus notices that the disk is full, or has room again, before the next request for a
  // lease.
  void check_store(Duration period);
  // `error`: why the last changes may not be on the disk; empty: they are.
  void set_disk_error(const std::optional<Error>& error) { disk_error_ = error; }

  std::shared_ptr<LongAnswer> doctor(uid_t viewer) override;
  proto::Health::Reply health() const override;

 private:
  class DoctorAnswer;
  // Add the facts of this daemon, of a GPU, and of what the watch found.
  void examine_self(Examination& machine, uid_t viewer);
  void examine_gpu(Examination& machine, const GpuEntry& gpu) const;
  void examine_findings(Examination& machine) const;
  std::optional<Error> store_error() const;
  // For each budget, the use of the user with the most. A viewer who may not see others gets only
  // their own use.
  std::vector<Examination::Use> budgets(uid_t viewer);

  Parts parts_;
  WallTime since_{};
  TimePoint store_checked_{};
  std::optional<Error> disk_error_;
};

}  // namespace gpurota::daemon
