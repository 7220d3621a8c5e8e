// Fillers that leave a GPU without ending: put aside among those who take turns, until nobody needs
// the GPU. What is decided is in filler/yielding.h. State thread only.
#pragma once

#include "daemon/supervised/filler_table.h"

namespace gpurota::daemon {

class Fillers;

class FillerMoves {
 public:
  FillerMoves(FillerTable& table, Fillers& fillers) : table_(table), fillers_(fillers) {}

  // Of a filler whose lease can be put aside.
  void evict(const GpuUuid& gpu);
  // After a change of turns; not from within whatever has just changed.
  void look_at_evictions();
  void step_eviction(const GpuUuid& gpu);
  // If it is out, and nobody has used the GPU for as long as its owner wants.
  void bring_back(const GpuUuid& gpu);
  std::optional<LeaseStay> stay_of(LeaseId lease) const;
  // A look at this GPU is all that an eviction waits for.
  bool expects_sample(const GpuUuid& gpu) const;

 private:
  filler::Eviction::Sight eviction_sight(const GpuUuid& gpu) const;
  void finish_eviction(const GpuUuid& gpu);

  FillerTable& table_;
  Fillers& fillers_;
  bool looking_ = false;  // look_at_evictions() is about to run
};

}  // namespace gpurota::daemon
