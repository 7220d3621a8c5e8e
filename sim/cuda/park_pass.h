// While a process is locked or parked, a call of the driver waits, answers, or kills the process,
// as measured with NVIDIA's driver (docs/design/park.md).
#pragma once

#include "sim/state/layout.h"

namespace gpurota::sim {

// Held during a call. May wait for the process to be unlocked, so it is made before the driver's
// lock is taken. With a null `function` it does nothing.
class ParkPass {
 public:
  ParkPass(ProcessSlot* slot, const char* function);
  ~ParkPass();
  ParkPass(const ParkPass&) = delete;
  ParkPass& operator=(const ParkPass&) = delete;

 private:
  ProcessSlot* slot_;
  const char* function_;
  bool counted_ = false;
};

// Wakes the calls that wait for this process to be unlocked.
void wake_parked(ProcessSlot& slot);

}  // namespace gpurota::sim
