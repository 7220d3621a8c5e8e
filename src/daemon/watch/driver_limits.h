// enforcement = "auto" or "driver": the driver limits the memory of slices, in addition to
// libgpurota, by the control groups of their commands and containers
// (docs/design/driver-limits.md). State thread only; a worker asks the driver.
#pragma once

#include "config/config.h"
#include "daemon/gpus/driver_state.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/watch/lease_groups.h"
#include "daemon/watch/limit_setter.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "sys/worker.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

// For doctor.
struct DriverLimitsReport {
  bool required = false;              // enforcement = "driver"
  int slices = 0;                     // leases with a limit that take no turns
  int limited = 0;                    // slices that the driver limits as well
  std::vector<std::string> problems;  // a sentence each; only the library enforces these limits
  std::vector<std::string> others;    // limits that somebody else has set
  std::string daemon_in;              // the limited control group that gpurotad is in; empty: none
};

class DriverLimits {
 public:
  // The time between two readings of the limits, which find limits that others have set.
  static constexpr Duration kPeriod = std::chrono::seconds(10);
  // How long the start of a command waits for its limit, so that the command executes nothing
  // before the limit is set.
  static constexpr Duration kStartPatience = std::chrono::seconds(2);
  // How long the driver may keep failing, for example while it is being reloaded, before the leases
  // that must have its limit are ended.
  static constexpr Duration kDriverPatience = 3 * kPeriod;

  // All must outlive the DriverLimits.
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    const GpuTable& gpus;
    const LeaseTables& tables;
    ports::Processes& processes;
    const DriverState& driver;
    std::function<std::shared_ptr<ports::GpuProbe>()> make_probe;
    std::function<void(LeaseId, const std::string& why)> end;
    // The answers of the functions below have changed, or a start has waited for kStartPatience.
    std::function<void()> on_change;
    std::string file;  // as of a LimitSetter
  };

  explicit DriverLimits(Parts parts)
      : parts_(std::move(parts)), chooser_(parts_.loop, parts_.tables, parts_.processes) {}

  // Takes over the limits that the last daemon has set, and removes the limits that are not wanted.
  // Waits for the driver, for a moment. Call once, after the leases have been restored.
  void start();
  // Call when the configuration or the GPUs have changed.
  void refresh();
  void on_lease_change(const LeaseEntry& entry, bool gone);
  // An error for a request or a booking that asks for a slice that the driver cannot limit on any
  // GPU, where the site requires that. Changes nothing.
  Result<void> check_request(const AcquireRequest& request) const;
  // The same for a new lease with its GPUs.
  Result<void> check_new(const LeaseEntry& entry) const;
  // Whether the start of a command of this lease, or of its pod's containers, must wait for the
  // driver: ask again after the next on_change(), which comes within kStartPatience. An error: the
  // site requires the driver's limit, and the driver does not set it; end the lease.
  Result<bool> check_start(const LeaseEntry& entry);

  // The most memory of a GPU that the driver lets the lease's limited group have, contexts
  // included, whether gpurota or somebody else has set this limit. Empty: there is no limit.
  std::optional<Bytes> limit_of(const LeaseEntry& entry, const GpuUuid& gpu) const;
  // Whether the driver limits all programs of the lease on all its GPUs.
  bool limits(const LeaseEntry& entry) const;
  // Why the driver does not limit the lease, or limits only some of its programs, as the end of a
  // sentence. Names no group: everybody may see it. Empty: the driver limits the lease, or need
  // not.
  std::string why_not(const LeaseEntry& entry) const;
  // The control group whose limit somebody else has set, if that limit counts for the lease or for
  // a part of its programs. Empty: none.
  std::string others_group(const LeaseEntry& entry) const;
  // Whether the driver has yet to answer about the last change.
  bool is_asking() const { return under_way_ > 0; }
  // Empty: enforcement = "library".
  std::optional<DriverLimitsReport> report() const;

 private:
  bool is_on() const { return parts_.config.enforcement != config::Enforcement::kLibrary; }
  const LimitFound* find(const LeaseEntry& entry, const GpuUuid& gpu) const;
  const LimitedGroup& chosen(const LeaseEntry& entry) const;
  void choose(const LeaseEntry& entry);
  // As why_not().
  std::string why_no_kind(LeaseKind kind) const;
  std::string why_no_pod(const LeaseEntry& entry) const;
  std::string why_no_gpu(const LeaseEntry& entry, const LeaseGpu& share) const;
  std::string why_no_group(const LeaseEntry& entry) const;
  std::string why_in_part(const LeaseEntry& entry) const;
  bool is_unanswered(const LeaseEntry& entry) const;
  bool is_required(const LeaseEntry& entry) const;
  bool fails_for_now(const LeaseEntry& entry) const;
  bool has_started(const LeaseEntry& entry) const;
  void watch_starts();
  LimitSetter::Wanted wanted() const;
  Bytes nested_limits(const std::string& group, const GpuEntry& gpu) const;
  std::vector<GpuInfo> limited_gpus() const;
  void run(bool wait);
  void on_round(std::uint64_t number, LimitRound round);
  void warn_once();
  void end_unlimited();
  void schedule();

  Parts parts_;
  bool started_ = false;
  int under_way_ = 0;              // rounds that the driver has not answered
  std::uint64_t rounds_ = 0;       // that have begun
  std::uint64_t last_number_ = 0;  // of the round in last_
  bool again_ = false;             // something has changed since the round began
  bool asked_ = false;             // the driver has answered once
  LimitRound last_;
  GroupChooser chooser_;
  std::map<LeaseId, LimitedGroup> chosen_;
  std::map<LeaseId, TimePoint> starts_;  // until when the start of a command waits for the driver
  // Since when the driver has been failing to limit a lease that must have its limit.
  std::map<LeaseId, TimePoint> failing_since_;
  std::string told_;  // the last trouble that was logged
  std::shared_ptr<LimitSetter> setter_;
  std::unique_ptr<sys::Worker> worker_;
  ports::EventLoop::SourcePtr timer_, starts_timer_;
};

}  // namespace gpurota::daemon
