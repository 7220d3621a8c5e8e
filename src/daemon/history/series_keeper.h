// Figures of GPUs and leases over time: every second, records the figures of the latest samples,
// and stores them. State thread only; a worker uses the disk.
//
// New figures are stored in one transaction after at most 10 s, so a kill -9 loses the figures of
// at most 10 s. Figures that cannot be stored stay in memory, and storing them is tried again. The
// failure is logged once, and nothing else fails because of it.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "ports/event_loop.h"
#include "ports/series_store.h"
#include "series/rings.h"
#include "sys/worker.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// The present figures of a lease's turns.
struct TurnFigures {
  bool holds = false;  // the lease has the turn
  bool waits = false;  // the lease waits for the turn
  Bytes out;           // memory moved from its GPUs to the host
};

class SeriesKeeper {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const GpuTable& gpus;
    const LeaseTables& tables;
    std::function<std::optional<TurnFigures>(LeaseId lease)> turn_of;  // empty: takes no turns
    std::function<WallTime()> wall_clock;
    std::shared_ptr<ports::SeriesStore> store;  // empty: figures are lost with the daemon
  };

  explicit SeriesKeeper(Parts parts);
  // Stores what is not stored yet, and waits a moment for the disk.
  ~SeriesKeeper();

  // Restores what the last daemon left, and samples from now on.
  void start();
  // Call after each sample of a GPU. `used`: what leases use there; `loads`: how busy leases keep
  // the GPU (lease_loads.h).
  void on_sample(const GpuUuid& gpu, std::map<LeaseId, Bytes> used,
                 std::optional<std::map<LeaseId, int>> loads);

  // A sample of the GPU has failed: the use by leases is unknown.
  void on_failed_sample(const GpuUuid& gpu) { seen_.erase(gpu); }

  const series::Rings& rings() const { return rings_; }
  // Why nothing is stored now, and what happened to an earlier file that was unusable.
  const std::optional<Error>& error() const { return error_; }
  const std::string& trouble() const { return trouble_; }

 private:
  struct Seen {
    std::map<LeaseId, Bytes> used;
    std::optional<std::map<LeaseId, int>> loads;
  };
  // The state of a lease at its last sample, to count changes since then.
  struct Before {
    Bytes out;
    bool grew = false;
  };
  void sample();
  void schedule();
  series::Entry gpu_entry(const GpuEntry& gpu);
  void add_leases(std::vector<series::Entry>& entries);
  void add_turns(const LeaseEntry& lease, series::Entry& entry);
  void load();
  void on_loaded(Result<ports::LoadedSeries> loaded);
  void store_changes();
  void on_stored(const std::vector<SeriesRow>& rows, const Result<void>& stored);
  void set_error(const Error& error);

  Parts parts_;
  series::Rings rings_;
  std::map<GpuUuid, Seen> seen_;
  std::map<GpuUuid, std::uint64_t> xid_errors_;
  std::map<LeaseId, Before> before_;
  std::map<GpuUuid, LeaseId> holders_;
  std::map<LeaseId, int> loads_;  // summed over a lease's GPUs; without leases of unknown load
  ports::EventLoop::SourcePtr timer_;
  bool loaded_ = false;
  bool storing_ = false;
  TimePoint stored_at_{};
  std::optional<Error> error_;
  std::string trouble_;
  sys::Worker worker_;
};

}  // namespace gpurota::daemon
