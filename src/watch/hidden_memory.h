// The one reckoning of memory that a GPU says is in use and that no listed process has. Pure.
//
//   hidden = used − Σ over leases of max(charge, listed) − Σ listed outside leases − baseline
//
// `listed` is with the little that the driver has beside each process. Memory that several
// processes have counts once: at its exporter, or at one importer if the exporter is gone. Used by
// the daemon after each reading of a GPU, and after each change of its leases. All who must know of
// such memory (placement, turns, fillers, the watch, status, metrics) are given this answer. No
// running lease is ended or made smaller because of it.
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

// Less is not told from noise.
inline constexpr Bytes kHiddenNoise = mib(256);
// The driver has so much beside each process that it lists: 9 MiB for one, 48 for eight (H100).
inline constexpr Bytes kBesideProcess = mib(10);
// Less is never use without a lease, whatever the threshold.
inline constexpr Bytes kLeastHiddenUse = gib(1);
// For so long more than that is taken for memory of an ended program, which the driver takes back.
inline constexpr Duration kHiddenLeaves = std::chrono::seconds(10);
// The baseline is the least of so much time without lease or process.
inline constexpr Duration kBaselineOver = std::chrono::minutes(10);

// The normal use of a GPU: the driver's own, a console, a server that the driver does not list.
class Baseline {
 public:
  // A reading without lease or process.
  void add_idle(Bytes unlisted, TimePoint now);
  // One with.
  void add_busy() { last_idle_.reset(); }
  // The last daemon has measured so much: the oldest of what is known.
  void restore(Bytes least);
  // The least of what is known; empty: no idle reading is.
  std::optional<Bytes> measured() const;
  // `most`: also what is taken for normal while no idle reading is known, as doubt is for giving.
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
  // After a reading of the GPU.
  Hidden read(const Reading& reading, const HiddenRules& rules, TimePoint now);
  // A lease has come or gone since the last reading of the GPU, which is `reading`. Memory that a
  // gone lease was charged for, and that is still in use, is memory of an ended program.
  Hidden after_change(const Reading& reading, const HiddenRules& rules, TimePoint now);
  Bytes baseline(const GpuUuid& gpu, Bytes size) const;
  // Restores the normal use that the last daemon has measured there, as Baseline::restore. Before
  // the first reading.
  void restore(const GpuUuid& gpu, Bytes baseline) { gpus_[gpu].baseline.restore(baseline); }
  // The same as it is measured now; empty: not yet.
  std::optional<Bytes> measured(const GpuUuid& gpu, Bytes size) const;

 private:
  struct Gpu {
    Baseline baseline;
    std::map<LeaseId, Bytes> charges;  // at the last reading
    Bytes counted_again;               // of these charges
    Bytes bytes;                       // hidden, noise included
    std::optional<TimePoint> much_since;
    bool in_use = false;
  };
  Hidden judge(Gpu& gpu, const Reading& reading, const HiddenRules& rules, TimePoint now) const;

  std::map<GpuUuid, Gpu> gpus_;
};

}  // namespace gpurota::watch
