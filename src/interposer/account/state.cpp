#include "interposer/account/state.h"

#include <cstring>

namespace gpurota::interposer {

uint64_t State::used(int slot, int64_t granted, int64_t headroom) const {
  const auto moving = static_cast<int64_t>(__atomic_load_n(&books[slot].movable, __ATOMIC_RELAXED));
  const int64_t used = granted - headroom + moving;
  return used > 0 ? static_cast<uint64_t>(used) : 0;
}

// The daemon compares these figures with NVML's while the program is quiet. If another thread
// changes the headroom or the grant during the store, both figures that follow from these are
// stored again, so that the page does not keep outdated ones.
void State::mirror(int slot) {
  gpurota_page* shared = page.load(std::memory_order_acquire);
  if (shared == nullptr) return;
  const Slot& from = slots[slot];
  gpurota_page_use& to = shared->use[slot];
  const auto store = [](uint64_t* field, uint64_t value) {
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
  };
  int64_t headroom = from.headroom.load();
  int64_t granted = from.granted.load();
  for (;;) {
    store(&to.headroom_bytes, headroom > 0 ? static_cast<uint64_t>(headroom) : 0);
    // An exchange, not a store: the loads below must not be reordered before it.
    __atomic_exchange_n(&to.used_bytes, used(slot, granted, headroom), __ATOMIC_SEQ_CST);
    const int64_t headroom_now = from.headroom.load();
    const int64_t granted_now = from.granted.load();
    if (headroom_now == headroom && granted_now == granted) break;
    headroom = headroom_now;
    granted = granted_now;
  }
  store(&to.allocations, from.allocations.load(std::memory_order_relaxed));
  store(&to.imported_bytes, from.imported.load(std::memory_order_relaxed));
  store(&to.refusals, from.refusals.load(std::memory_order_relaxed));
}

void State::count_unhooked(const char* name) {
  unhooked.count.fetch_add(1, std::memory_order_relaxed);
  {
    Lock lock(unhooked.mutex);
    for (uint32_t i = 0; i < unhooked.names; ++i) {
      if (strncmp(unhooked.name[i], name, GPUROTA_PAGE_NAME_BYTES - 1) == 0) name = nullptr;
      if (name == nullptr) break;
    }
    if (name != nullptr && unhooked.names < GPUROTA_PAGE_NAMES) {
      strncpy(unhooked.name[unhooked.names++], name, GPUROTA_PAGE_NAME_BYTES - 1);
    }
  }
  mirror_unhooked();
}

void State::mirror_unhooked() {
  gpurota_page* shared = page.load(std::memory_order_acquire);
  if (shared == nullptr) return;
  __atomic_store_n(&shared->use[0].unhooked, unhooked.count.load(std::memory_order_relaxed),
                   __ATOMIC_RELAXED);
  Lock lock(unhooked.mutex);
  memcpy(shared->unhooked_name, unhooked.name, sizeof(unhooked.name));
  __atomic_store_n(&shared->unhooked_names, unhooked.names, __ATOMIC_RELEASE);
}

}  // namespace gpurota::interposer
