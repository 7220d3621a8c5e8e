// The gate of this process: the part of the tenant's state for gate/ (driver/driver_part.h). Swap
// leases use the gate itself, slices its latency classes.
#pragma once

#include "interposer/account/state.h"
#include "interposer/gate/gate.h"
#include "interposer/gate/latency.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

struct GatePart : State {
  Gate gate;
  // Submissions that wait at the gate, by the slot of their GPU.
  std::atomic<uint32_t> standing[GPUROTA_SLOTS];
  // Held while the worker uses contexts, so that none is destroyed meanwhile.
  Mutex contexts_mutex;
  Latency latency;
  // Threads that hold back a submission before the gate, in a swap lease. The program is at work.
  std::atomic<uint32_t> held_back;
};

inline GatePart& gate_of(State& s) { return static_cast<GatePart&>(s); }

}  // namespace gpurota::interposer
