// Calls of the driver under way for which more was taken from the headroom than may be kept in the
// end.
//
// A request that is refused waits for those that began before it, shortly: what they give back may
// be what it lacks. Any thread, no locks; one that finds no place in the table is not waited for.
#pragma once

#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

class Flight {
 public:
  Flight() = default;
  explicit Flight(Slot& slot) { begin(slot); }
  ~Flight() { end(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Before anything is taken for it.
  void begin(Slot& slot);
  void end();
  // It waits itself, and nobody is to wait for it.
  void wait_begins();
  void wait_ends();

 private:
  std::atomic<uint64_t>* place_ = nullptr;
  uint64_t ticket_ = 0;
};

// Who begins from now on has a larger ticket.
uint64_t last_ticket(Slot& slot);
// Whether one is under way whose ticket is no larger.
bool under_way(const Slot& slot, uint64_t ticket);

}  // namespace gpurota::interposer
