// Handles each sample of a GPU: finds the lease of each process, and notifies the parts of the
// daemon in a fixed order. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/control/shared_answers.h"
#include "daemon/gpus/driver_state.h"
#include "daemon/gpus/samples.h"
#include "daemon/history/recorder.h"
#include "daemon/history/recovered_memory.h"
#include "daemon/history/series_keeper.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/queue.h"
#include "daemon/supervised/fillers.h"
#include "daemon/supervised/jobs.h"
#include "daemon/tenants/limit_keeper.h"
#include "daemon/tenants/swap_tenants.h"
#include "daemon/tenants/tenant_server.h"
#include "daemon/tenants/turn_keeper.h"
#include "daemon/watch/watch_keeper.h"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace gpurota::daemon {

class SampleHandler final : public SampleListener {
 public:
  // All must outlive the SampleHandler.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    const config::Config& config;
    GpuTable& gpus;
    GpuStates& states;
    lease::GrantBook& grants;
    const DriverState& driver;
    const LeaseTables& tables;
    LeaseManager& leases;
    Queue& queue;
    Recorder& recorder;
    TurnKeeper& turns;
    SwapTenants& swap;
    TenantServer& tenants;
    LimitKeeper& limits;
    WatchKeeper& watch;
    Fillers& fillers;
    Jobs& jobs;
    SharedAnswers& answers;
    SeriesKeeper& series;
    std::function<void()> on_sample;  // called before the sample is handled
  };

  explicit SampleHandler(Parts parts) : parts_(std::move(parts)) {}

  void before_sample(const GpuUuid& gpu) override { parts_.tenants.before_sample(gpu); }
  void on_sample(GpuSample sample, TimePoint taken) override;
  bool wants_process_loads(const GpuUuid& gpu) const override;
  void on_figures(const GpuUuid& gpu, GpuFigures figures) override;
  void on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids) override;
  bool is_hurried(const GpuUuid& gpu) const override;
  Duration period_of(const GpuUuid& gpu) const override;

  // Whether the lease had memory in the last sample of any GPU.
  bool holds_memory(LeaseId lease) const;
  // The memory that has come back from the processes of leases since the daemon started.
  Bytes recovered() const { return recovered_.total(); }

 private:
  // The memory in a sample by lease and process.
  struct Shares {
    std::map<LeaseId, Bytes> outsiders;
    std::map<LeaseId, Bytes> used;          // by all of a lease's processes
    std::map<pid_t, Bytes> by_process;      // of processes of leases
    std::map<pid_t, LeaseId> owners;        // the lease of each process in `by_process`
    std::map<pid_t, Bytes> swap_outsiders;  // the part of `outsiders` in swap leases
  };
  void count_machine_use(GpuEntry& entry, const watch::Reading& reading);
  bool measures(const GpuUuid& gpu) const;
  Shares share_out(const watch::Reading& reading);
  void on_error(GpuEntry& entry, const std::string& error);
  void record_state(const GpuEntry& gpu, const std::string& error);

  Parts parts_;
  RecoveredMemory recovered_;
  std::map<GpuUuid, std::map<LeaseId, Bytes>> holders_;  // leases with memory
};

}  // namespace gpurota::daemon
