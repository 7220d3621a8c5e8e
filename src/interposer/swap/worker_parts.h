// Shared by the two parts of the worker: worker.cpp checks for work in flight, tells the daemon and
// opens the gate; moves.cpp carries out orders to move and prepares host memory. The worker's
// thread only.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// The worker's own state, on the stack of its thread, so a fork has nothing to reset.
struct Worker {
  State& s;
  Swap& swap;
  bool told = false;
  uint32_t told_seq = 0;
  bool told_busy = false;
  uint32_t told_waiting = 0;
  uint32_t told_ready = 0;
  uint64_t told_pinned = 0;
  bool prepares = false;  // more host memory is being made ready
  int moving = 0;         // the slot
  bool busy = true;
  uint32_t submissions = 0;  // at the last check
  uint32_t busy_slots = 0;
  int64_t cannot_open_since = 0;
};

// worker.cpp

// Whether anything is in flight, or being submitted.
bool is_busy(Worker& w);
// Tells the daemon what has changed since the last message. `seq`: of the last gate order that was
// carried out.
void tell(Worker& w, uint32_t seq);

// moves.cpp

// To be called when the program has run, or is about to run: host memory may no longer have the
// same bytes as the GPUs.
void forget_copies(Swap& swap);
// Evicted bytes of all GPUs, without parked memory.
uint64_t out_bytes(Swap& swap);
// Bytes of pinned host memory, summed over all GPUs; bounce buffers are not counted.
uint64_t pinned_bytes(Swap& swap);
// Carries out the orders to move that have come meanwhile.
void carry_out_moves(Worker& w);
// Prepares one region of host memory, before evictions are expected. True: there is more to do.
bool prepare_host_memory(Worker& w);

}  // namespace gpurota::interposer
