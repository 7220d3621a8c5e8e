// What is known of the fillers: each with its owner's wishes, and each GPU with what is on it. Its
// classes (fillers.h, filler_*.h) work on one table. State thread only.
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

// What its owner said of it, beside the command.
struct FillerWishes {
  std::vector<GpuUuid> gpus;     // empty: all
  std::optional<int> instances;  // empty: one on each idle GPU
  std::optional<SizeSpec> memory;
  std::optional<int> of_free{};  // per cent of what is free when it starts, instead of `memory`
  std::chrono::milliseconds idle_after{30000};
  std::chrono::milliseconds grace{2000};
  filler::OnYield on_yield = filler::OnYield::kStop;

  bool may_use(const GpuUuid& gpu) const;
  // Its limit on a GPU of which so much can be had; nothing: the whole GPU.
  std::optional<SizeSpec> memory_of(const lease::Available& available) const;
};

struct FillerEntry : Supervised {
  FillerWishes wishes;
  bool paused = false;
  std::string paused_by;        // "by root (administrator)", and why; empty: by its owner
  bool removed = false;         // goes as soon as it is on no GPU any more
  std::vector<GpuUuid> places;  // where it has ever been: their positions number its runs
  int failures = 0;             // soon or badly ended by itself, in a row
  std::optional<TimePoint> retry_at;
  std::string problem;    // how it last ended by itself, if not well
  TimePoint failed_at{};  // then
  TimePoint last_start = TimePoint::min();

  bool is_removed() const { return removed; }
};

// One GPU.
struct FillerSpot {
  filler::TurnTaking turns{filler::Rules{}};
  std::optional<std::uint64_t> filler;  // which is on, or on its way out
  std::uint64_t run = 0;                // of it here
  std::optional<LeaseId> lease;         // of it, until the memory is back
  TimePoint since{};
  Duration stayed{};  // until it was last moved out for somebody
  // And since: it is on, or its owner has paused it. Empty: it is out for somebody.
  std::optional<TimePoint> stays_from;
  ports::EventLoop::SourcePtr kill_timer;
  bool told_to_end = false;
  bool may_lack_lease = false;  // an earlier daemon started it, and no lease of it is known
  std::optional<filler::Eviction> eviction;  // it is being moved out
  bool moved_out = false;                    // it is out
  Bytes stays;                               // of what is out, on the GPU
  std::optional<Bytes> counted;              // of its lease there, by the last look
  ports::EventLoop::SourcePtr look_timer;    // of the eviction

  // It is out for somebody from now on.
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
  std::string directory;  // of their files
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
  // An event, and a line of the log, about what this filler does there.
  void record(proto::EventType type, const FillerEntry& entry, const GpuUuid& gpu,
              const std::string& what);
  Result<void> save(const FillerEntry& entry) const;
  // What its output may take of the disk: of each GPU where it has been, of one at the least.
  void count_logs(FillerEntry& entry);

  // The run of a filler on one GPU, by the place of that GPU among those where it has been.
  static constexpr std::size_t kMostPlaces = 1024;
  static std::uint64_t run_at(const FillerEntry& entry, std::size_t place);
  const GpuUuid& gpu_of(std::uint64_t run) const;
  // Somewhere; or its memory is not back yet.
  bool is_on(const FillerEntry& entry) const;
  bool is_kept_by(const LeaseEntry& lease, const FillerSpot& spot) const;
  // Whether it has its lease, and that can be put aside.
  const LeaseEntry* swap_lease_of(const FillerSpot& spot) const;
  filler::WayOut way_out_of(const GpuUuid& gpu) const;
};

}  // namespace gpurota::daemon
