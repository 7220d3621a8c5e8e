// Takes up the fillers that the last daemon left: their rows, their keepers that still live, and
// their leases. State thread only.
#pragma once

#include "daemon/supervised/filler_moves.h"

namespace gpurota::daemon {

class Fillers;

class FillerAdoption {
 public:
  FillerAdoption(FillerTable& table, FillerMoves& moves, Fillers& fillers)
      : table_(table), moves_(moves), fillers_(fillers) {}

  // Call when the sockets are open, after the leases have been restored.
  Result<void> take_up_all();

 private:
  Result<void> take_up(const ports::StoredFiller& stored);
  Result<void> find_running(FillerEntry& entry, const std::vector<GpuUuid>& out);
  void take_up_lease(FillerEntry& entry, const GpuUuid& gpu, bool was_out);

  FillerTable& table_;
  FillerMoves& moves_;
  Fillers& fillers_;
};

}  // namespace gpurota::daemon
