#include "interposer/memory/pool_settlement.h"

#include "interposer/account/headroom.h"
#include "interposer/memory/reserve.h"

namespace gpurota::interposer {
namespace {

// Obtains `excess`, the bytes by which the pool grew beyond what was taken. If the headroom lacks
// fewer bytes, obtains only the missing bytes. Other threads obtain their own excess. Bytes that
// are freed meanwhile count like granted bytes.
bool bring(State& s, int slot, int64_t excess, int64_t headroom, Flight* flight) {
  while (headroom < 0) {
    const int64_t need = excess < -headroom ? excess : -headroom;
    if (reserve(slot, need, flight) == Answer::kYes) {
      put(slot, need);
      return true;
    }
    headroom = s.slots[slot].headroom.load();
    if (-headroom >= need) return false;
  }
  return true;
}

// Whether the page shows more bytes than are used, for example after a reserve() of more than was
// needed.
bool page_shows_too_much(State& s, int slot) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const int64_t granted = s.slots[slot].granted.load();
  const uint64_t used = s.used(slot, granted, s.slots[slot].headroom.load());
  return __atomic_load_n(&page->use[slot].used_bytes, __ATOMIC_SEQ_CST) > used;
}

}  // namespace

// Does not write the page where nothing has changed: the daemon looks for moments in which the page
// stays the same.
bool settle(State& s, Pool& pool, int64_t taken, Flight* flight) {
  const int slot = pool.slot;
  const bool charged = is_charged(pool);
  if (charged) credit_headroom(s, slot, taken);
  const auto [grown, left] = charged ? Charged{} : charge_growth(s, pool, taken, true);
  if (taken > grown && (swapping() || above_limit(s, slot))) {
    put(slot, 0);  // gives the unused bytes to the daemon
  } else if (grown != 0 || page_shows_too_much(s, slot)) {
    s.mirror(slot);
  }
  return grown <= taken || bring(s, slot, grown - taken, left, flight);
}

}  // namespace gpurota::interposer
