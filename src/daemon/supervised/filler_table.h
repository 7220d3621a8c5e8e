// The fillers, each with its owner's wishes, and the GPUs, each with the filler that is on it. The
// classes of fillers.h and filler_*.h work on one table. State thread only.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/availability.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/queue.h"
#include "daemon/supervised/supervisor.h"
#include "daemon/tenants/turn_keeper.h"
#include "filler/choice.h"
#include "filler/turn_taking.h"
#include "filler/yielding.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// The wishes of a filler's owner, beside the command.
struct FillerWishes {
  std::vector<GpuUuid> gpus;     // empty: all
  std::optional<int> instances;  // empty: one on each idle GPU
  std::optional<SizeSpec> memory;
  std::optional<int> of_free{};  // per cent of the free memory at its start, instead of `memory`
  std::chrono::milliseconds idle_after{30000};
  std::chrono::milliseconds grace{2000};
  filler::OnYield on_yield = filler::OnYield::kStop;

  bool may_use(const GpuUuid& gpu) const;
  // The memory limit of the filler on a GPU with this much available. Empty: the whole GPU.
  std::optional<SizeSpec> memory_of(const lease::Available& available) const;
};

struct FillerEntry : Supervised {
  FillerWishes wishes;
  bool paused = false;
  std::string paused_by;  // "by root (administrator)", and why; empty: by its owner
  bool removed = false;   // dropped as soon as it is on no GPU
  // All GPUs on which the filler has been. run_at() derives the number of a run from a position in
  // this list.
  std::vector<GpuUuid> places;
  int failures = 0;  // runs in a row that ended by themselves too soon or with an error
  std::optional<TimePoint> retry_at;
  std::string problem;    // why the last failed run or start failed; empty after a good run
  TimePoint failed_at{};  // when a run or a start last failed
  TimePoint last_start = TimePoint::min();

  bool is_removed() const { return removed; }
};

// One GPU, as far as fillers are concerned.
struct FillerSpot {
  filler::TurnTaking turns{filler::Rules{}};
  std::optional<std::uint64_t> filler;  // the filler that is on the GPU, or is leaving it
  std::uint64_t run = 0;                // the number of its run here
  std::optional<LeaseId> lease;         // its lease, until the memory is back
  TimePoint since{};
  Duration stayed{};  // how long it has stayed, up to the last time it was moved out for somebody
  // Since when its present stay counts: the filler is on, or paused by its owner. Empty: the filler
  // is moved out because somebody needs the GPU.
  std::optional<TimePoint> stays_from;
  ports::EventLoop::SourcePtr kill_timer;
  bool told_to_end = false;
  bool may_lack_lease = false;  // an earlier daemon started it, and no lease of it is known
  std::optional<filler::Eviction> eviction;  // the filler is being moved out
  bool moved_out = false;                    // the filler is moved out
  Bytes stays;                               // memory that stays on the GPU after the move
  std::optional<Bytes> counted;              // memory of its lease, by the last sample
  ports::EventLoop::SourcePtr check_timer;   // of the eviction

  // Ends the present stay: the filler is moved out from now on, because somebody needs its GPU.
  void stop_stay(TimePoint now) {
    if (stays_from) stayed += now - *stays_from;
    stays_from.reset();
  }
};

struct FillerParts {
  ports::EventLoop& loop;
  ports::Processes& processes;
  Supervisor::Parts supervisor;
  const config::Config& config;
  const GpuTable& gpus;
  const LeaseTables& tables;
  LeaseManager& leases;
  TurnKeeper& turns;
  Recorder& recorder;
  Queue& queue;
  const GpuStates& states;
  const Availability& availability;
  Samples& samples;
  std::function<WallTime()> wall_clock;
  std::string directory;  // of the files of fillers
};

class FillerTable {
 public:
  FillerTable(FillerParts parts, Supervisor::Policy& policy);

  FillerParts parts;
  Supervisor supervisor;
  std::map<std::uint64_t, FillerEntry> entries;
  std::map<GpuUuid, FillerSpot> spots;

  WallTime wall_time(TimePoint when) const;
  std::string gpu_name(const GpuUuid& gpu) const;
  // Records an event, and writes a line to the log, about what this filler does on the GPU.
  void record(proto::EventType type, const FillerEntry& entry, const GpuUuid& gpu,
              const std::string& what);
  Result<void> save(const FillerEntry& entry) const;
  // Counts the disk that the filler's logs may take: a log for each GPU where it has been, and at
  // least one.
  void count_logs(FillerEntry& entry);

  // The most GPUs in FillerEntry::places, whose positions number the runs of a filler.
  static constexpr std::size_t kMostPlaces = 1024;
  static std::uint64_t run_at(const FillerEntry& entry, std::size_t place);
  const GpuUuid& gpu_of(std::uint64_t run) const;
  // Whether the filler is on some GPU, or its memory is not back yet.
  bool is_on(const FillerEntry& entry) const;
  bool is_kept_by(const LeaseEntry& lease, const FillerSpot& spot) const;
  // The filler's lease, if it has one whose memory can be moved out; else nullptr.
  const LeaseEntry* swap_lease_of(const FillerSpot& spot) const;
  filler::WayOut way_out_of(const GpuUuid& gpu) const;
};

}  // namespace gpurota::daemon
