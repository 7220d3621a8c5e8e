// Fillers that leave a GPU without ending: their memory is moved to host memory, like the memory of
// leases that take turns, until nobody needs the GPU. filler/yielding.h decides. State thread only.
#pragma once

#include "daemon/supervised/filler_table.h"

namespace gpurota::daemon {

class Fillers;

class FillerMoves {
 public:
  FillerMoves(FillerTable& table, Fillers& fillers) : table_(table), fillers_(fillers) {}

  // Begins to move out the filler on this GPU. The filler must have a lease whose memory can be
  // moved.
  void evict(const GpuUuid& gpu);
  // Call after a change of turns. The check follows soon, when the function that made the change
  // has returned.
  void check_evictions();
  void step_eviction(const GpuUuid& gpu);
  // Brings the filler of this GPU back, if it is moved out and the GPU has been idle for as long as
  // its owner wants.
  void bring_back(const GpuUuid& gpu);
  std::optional<LeaseStay> stay_of(LeaseId lease) const;
  // Whether an eviction on this GPU waits only for a sample of the GPU.
  bool expects_sample(const GpuUuid& gpu) const;

 private:
  filler::Eviction::Sight eviction_sight(const GpuUuid& gpu) const;
  void finish_eviction(const GpuUuid& gpu);

  FillerTable& table_;
  Fillers& fillers_;
  bool check_posted_ = false;  // check_evictions() is about to run
};

}  // namespace gpurota::daemon
