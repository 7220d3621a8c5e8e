// Requests for memory: take bytes from the headroom before the driver is called, try everything
// before the program is refused, put bytes back, refuse. reserve.cpp has these steps in the order
// in which they happen.
//
// Any thread. Asking may wait for the daemon (GPUROTA_WAIT_MS while it is away); a refusal by the
// lease's limit may take a second more.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/wire.h"
#include "interposer/account/answer.h"
#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// A driver call that is under way. The bytes taken from the headroom for the call may be more than
// the call needs in the end. Before a request is refused, it waits a short time for the flights
// that began earlier, because they may give back the bytes that the request lacks.
//
// No locks. A flight that finds no place in the slot's table is not waited for.
class Flight {
 public:
  Flight() = default;
  explicit Flight(Slot& slot) { begin(slot); }
  ~Flight() { end(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Must come before anything is taken for the flight.
  void begin(Slot& slot);
  void end();
  // Between wait_begins() and wait_ends() the flight itself waits, and nobody waits for it.
  void wait_begins();
  void wait_ends();

 private:
  std::atomic<uint64_t>* place_ = nullptr;
  uint64_t ticket_ = 0;
};

// The last ticket: flights that begin from now on have a larger one.
uint64_t last_ticket(Slot& slot);
// Whether a flight with this ticket or a smaller one is under way.
bool under_way(const Slot& slot, uint64_t ticket);

// Takes `bytes` from the headroom. If the headroom is too small, tries the steps that reserve.cpp
// describes. `own`: the flight for which the bytes are taken.
Answer reserve(int slot, int64_t bytes, Flight* own = nullptr);

// Takes `bytes` from the headroom if they are there, and asks nobody.
bool take(State& s, int slot, int64_t bytes);

// Asks the daemon for `need` bytes on a slot, giving back all its headroom with the question. On
// kYes the bytes are already taken from the headroom. For a context `need` is 0.
Answer grow(int slot, gpurota_grow_kind kind, uint64_t need);

// Puts `bytes` back into the headroom, and gives excess headroom back to the daemon.
void put(int slot, int64_t bytes);

// Whether more is granted than the lease's present limit. If so, what is freed is given back to the
// daemon at once.
bool above_limit(const State& s, int slot);

// Each refusal has a reason. The page counts refusals, GPUROTA_DEBUG shows them, and the program's
// user is told each reason once.
//
// Refuses an allocation on a GPU of the lease; `bytes` 0: a context. `why` is not kYes.
CUresult refuse(int slot, uint64_t bytes, Answer why);
// Refuses memory of another process.
CUresult refuse_import(int slot, uint64_t bytes, Answer why);
// Refuses memory on a GPU that is not of the lease, or not known to be.
CUresult refuse_elsewhere();

}  // namespace gpurota::interposer
