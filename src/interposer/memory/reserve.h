// Asking for memory: taking it from the headroom before the driver is called, and with that all
// that is tried before the program is refused; putting it back; refusing. reserve.cpp reads in the
// order in which things happen.
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

// A call of the driver under way for which more was taken from the headroom than may be kept in the
// end. A request that is about to be refused waits, shortly, for those that began before it: what
// they give back may be what it lacks.
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
  // Between these two the flight waits itself, and nobody waits for it.
  void wait_begins();
  void wait_ends();

 private:
  std::atomic<uint64_t>* place_ = nullptr;
  uint64_t ticket_ = 0;
};

// Flights that begin from now on have a larger ticket.
uint64_t last_ticket(Slot& slot);
// Whether a flight is under way whose ticket is no larger.
bool under_way(const Slot& slot, uint64_t ticket);

// Takes `bytes` from the headroom: out of what is there, else with all that reserve.cpp tries.
// `own`: the flight for which they are taken.
Answer reserve(int slot, int64_t bytes, Flight* own = nullptr);

// Takes `bytes` from the headroom if they are there, and asks nobody.
bool take(State& s, int slot, int64_t bytes);

// Asks the daemon for `need` bytes on a slot, giving back all its headroom with the question. On
// kYes they are taken from the headroom already. For a context `need` is 0.
Answer grow(int slot, gpurota_grow_kind kind, uint64_t need);

// Puts `bytes` back into the headroom, and gives the daemon what is too much of it.
void put(int slot, int64_t bytes);

// Whether more was granted than the lease's limit is by now. If so, what is freed is given back to
// the daemon at once.
bool above_limit(const State& s, int slot);

// Each refusal has its reason, which the page counts, GPUROTA_DEBUG shows and the program's user is
// told once.
//
// Refuses an allocation on a GPU of the lease; `bytes` 0: a context. `why` is not kYes.
CUresult refuse(int slot, uint64_t bytes, Answer why);
// Refuses memory of another process.
CUresult refuse_import(int slot, uint64_t bytes, Answer why);
// Refuses memory on a GPU that is not of the lease, or of which nobody can say whether it is.
CUresult refuse_elsewhere();

}  // namespace gpurota::interposer
