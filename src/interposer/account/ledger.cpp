#include "interposer/account/ledger.h"

#include "interposer/account/link.h"

namespace gpurota::interposer {

void put(int slot, int64_t bytes) {
  State& s = state();
  credit_headroom(s, slot, bytes);
  const int64_t now = s.slots[slot].headroom.load(std::memory_order_relaxed);
  const bool keeps = !swapping() && !above_limit(s, slot);
  if (now > (keeps ? kExcess : 0)) give_back_excess(slot);
  s.mirror(slot);
}

}  // namespace gpurota::interposer
