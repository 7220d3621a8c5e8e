// Computes the memory that a GPU reports as in use and that no listed process has. Pure.
//
//   hidden = used − Σ over leases of max(charge, listed) − Σ listed outside leases − baseline
//
// `listed` includes the little that the driver has beside each process. Memory that several
// processes have counts once: for its exporter, or for one importer if the exporter is gone. Used
// by the daemon after each reading of a GPU, and after each change of its leases. Placement, turns,
// fillers, the watch, status and metrics all use this result. No running lease is ended or made
// smaller because of hidden memory.
#pragma once

#include "watch/finding.h"

#include <deque>
#include <map>
#include <optional>

namespace gpurota::watch {

struct HiddenRules {
  Bytes threshold = gib(1);         // of use without a lease, as in Policy
  std::optional<Bytes> unlisted{};  // what the site says is normal there; empty: measured
};

// Hidden memory up to this cannot be told from noise.
inline constexpr Bytes kHiddenNoise = mib(256);
// Memory of the driver beside each process that it lists: 9 MiB for one, 48 for eight (H100).
inline constexpr Bytes kBesideProcess = mib(10);
// Hidden memory up to this is never use without a lease, whatever the threshold.
inline constexpr Bytes kLeastHiddenUse = gib(1);
// For this long, hidden memory above the threshold is taken for memory of an ended program that the
// driver is still freeing.
inline constexpr Duration kHiddenLeaves = std::chrono::seconds(10);
// The baseline is the least use over this much time without lease or process.
inline constexpr Duration kBaselineOver = std::chrono::minutes(10);

// The normal use of a GPU: by the driver itself, a console, a server that the driver does not list.
class Baseline {
 public:
  // Adds a reading without lease or process.
  void add_idle(Bytes unlisted, TimePoint now);
  // Notes a reading with a lease or a process.
  void add_busy() { last_idle_.reset(); }
  // Adds what the last daemon measured, as the oldest figure.
  void restore(Bytes least);
  // The least known figure; empty: there was no idle reading.
  std::optional<Bytes> measured() const;
  // The baseline, at most `most`. Without an idle reading it is `most`: in doubt, use counts as
  // normal.
  Bytes value(Bytes most) const;

 private:
  struct Minute {
    Duration begins;  // on a clock that runs only while the GPU is idle
    Bytes least;
  };
  std::deque<Minute> minutes_;
  Duration idle_{};
  std::optional<TimePoint> last_idle_;
};

class HiddenMemory {
 public:
  // Call after each reading of the GPU.
  Hidden read(const Reading& reading, const HiddenRules& rules, TimePoint now);
  // Call when a lease has begun or ended since the last reading of the GPU, which is `reading`.
  // Memory that an ended lease was charged for, and that is still in use, is memory of an ended
  // program.
  Hidden after_change(const Reading& reading, const HiddenRules& rules, TimePoint now);
  Bytes baseline(const GpuUuid& gpu, Bytes size) const;
  // Restores the normal use that the last daemon measured, as Baseline::restore does. Call before
  // the first reading.
  void restore(const GpuUuid& gpu, Bytes baseline) { gpus_[gpu].baseline.restore(baseline); }
  // The normal use that was measured; empty: none yet.
  std::optional<Bytes> measured(const GpuUuid& gpu, Bytes size) const;

 private:
  struct Gpu {
    Baseline baseline;
    std::map<LeaseId, Bytes> charges;  // at the last reading
    Bytes counted_again;               // the part of these charges that counts again
    Bytes bytes;                       // hidden, noise included
    std::optional<TimePoint> much_since;
    bool in_use = false;
  };
  Hidden judge(Gpu& gpu, const Reading& reading, const HiddenRules& rules, TimePoint now) const;

  std::map<GpuUuid, Gpu> gpus_;
};

}  // namespace gpurota::watch
