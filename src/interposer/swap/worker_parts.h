// Shared by the two parts of the worker: worker.cpp, which looks, tells and opens the gate, and
// moves.cpp, which carries out orders to move and has host memory ready. The worker's thread only.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// The worker's own; dies with its thread, so a fork needs nothing.
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
  int moving = 0;  // the slot
  bool busy = true;
  uint32_t submissions = 0;  // at the last look
  uint32_t busy_slots = 0;
  int64_t cannot_open_since = 0;
};

// worker.cpp

// Whether anything is in flight, or being submitted.
bool is_busy(Worker& w);
// Tells the daemon what has changed since it was last told; `seq`: of the last gate order that was
// carried out.
void tell(Worker& w, uint32_t seq);

// moves.cpp

// The program has run, or is about to: what host memory has of its memory may no longer be what
// GPUs have.
void forget_copies(Swap& swap);
// Of the memory of all GPUs, but for what is parked.
uint64_t out_bytes(Swap& swap);
// Host memory that is pinned for all GPUs, but for bounce buffers.
uint64_t pinned_bytes(Swap& swap);
// Carries out what was ordered meanwhile.
void carry_out_moves(Worker& w);
// Makes one region of host memory ready, ahead of the evictions that are to be expected once turns
// are taken. True: there is more to do.
bool prepare_host_memory(Worker& w);

}  // namespace gpurota::interposer
