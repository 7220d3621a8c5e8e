#include "interposer/ledger.h"

#include "interposer/debug.h"
#include "interposer/flights.h"
#include "interposer/link.h"
#include "interposer/pools.h"
#include "interposer/swap/grants.h"

namespace gpurota::interposer {
namespace {

// For the calls of others, whose threads may be off their processor for a while; and with all questions.
constexpr int kPatience = 200;  // ms
// Of questions; each but the first because something was freed while the last was under way.
constexpr int kMostQuestions = 64;

// More than the lease is to have at all; where that is not known nothing is.
bool beyond_limit(const State& s, int slot, int64_t bytes) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const uint64_t limit = __atomic_load_n(&page->grant[slot].limit_bytes, __ATOMIC_RELAXED);
  return limit != 0 && bytes > 0 && static_cast<uint64_t>(bytes) > limit;
}

// While it lives, what is put back is counted. Who puts back looks for it after the headroom is changed, and it
// looks at the headroom after it has begun: one of the two has seen the other.
class Refusal {
 public:
  explicit Refusal(Slot& slot) : slot_(slot) { slot_.asking.fetch_add(1); }
  ~Refusal() { slot_.asking.fetch_sub(1); }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

 private:
  Slot& slot_;
};

// Asks the daemon, then lets idle pools go, and believes a refusal only if nothing was put back since before
// it was asked: what this thread's pools let go another may have given back with a question of its own, and
// then it is the daemon's. `seen`: of Slot::freed, as the refusal has seen it.
bool ask(State& s, int slot, int64_t bytes, int64_t deadline, uint32_t* seen) {
  const std::atomic<uint32_t>& freed = s.slots[slot].freed;
  for (int i = 1;; ++i) {
    *seen = freed.load();
    const Answer answer = grow(slot, GPUROTA_GROW_MEMORY, static_cast<uint64_t>(bytes));
    if (answer == Answer::kYes) return true;
    if (beyond_limit(s, slot, bytes)) return false;  // waiting does not help
    if (i == 1) reclaim_pools(slot);
    if (take(s, slot, bytes)) return true;
    if (answer != Answer::kNo || freed.load() == *seen) return false;
    if (i == kMostQuestions || now_ms() >= deadline) return false;
  }
}

// What others have under way is more than they will keep: a refusal waits for those that began before it.
bool outlast(State& s, int slot, int64_t bytes, int64_t deadline, Flight* own, uint32_t seen) {
  Slot& ledger = s.slots[slot];
  const uint64_t last = last_ticket(ledger);
  if (own != nullptr) own->wait_begins();
  bool taken = false;
  const int64_t patience = deadline - now_ms();
  for (int64_t i = 0; i < patience && !taken && under_way(ledger, last); ++i) {
    sleep_ms(1);
    taken = take(s, slot, bytes);
  }
  if (own != nullptr) own->wait_ends();
  return taken || (ledger.freed.load() != seen && ask(s, slot, bytes, deadline, &seen));
}

}  // namespace

// Who finds too little finds the flight for which it was taken.
bool take(State& s, int slot, int64_t bytes) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load();
  while (now >= bytes) {
    if (headroom.compare_exchange_weak(now, now - bytes)) return true;
  }
  return false;
}

// The page shows the charge before the driver takes the memory: a look of the daemon in between must
// not find more memory than is said to be in use.
bool reserve(int slot, int64_t bytes, Flight* own) {
  State& s = state();
  bool reserved = take(s, slot, bytes);
  if (!reserved) {
    ErrnoGuard guard;
    const Refusal refusal(s.slots[slot]);
    const int64_t deadline = now_ms() + kPatience;
    uint32_t seen = 0;
    reserved = ask(s, slot, bytes, deadline, &seen) ||
               (!beyond_limit(s, slot, bytes) && outlast(s, slot, bytes, deadline, own, seen));
  }
  if (reserved) s.mirror(slot);
  return reserved;
}

bool above_limit(const State& s, int slot) {
  return beyond_limit(s, slot, s.slots[slot].granted.load(std::memory_order_relaxed));
}

void credit_headroom(State& s, int slot, int64_t bytes) {
  Slot& ledger = s.slots[slot];
  ledger.headroom.fetch_add(bytes);
  if (bytes > 0 && ledger.asking.load() != 0) ledger.freed.fetch_add(1);
}

void put(int slot, int64_t bytes) {
  State& s = state();
  credit_headroom(s, slot, bytes);
  const int64_t now = s.slots[slot].headroom.load(std::memory_order_relaxed);
  const bool keeps = !swapping() && !above_limit(s, slot);
  if (now > (keeps ? kExcess : 0)) give_back_excess(slot);
  s.mirror(slot);
}

int64_t take_above(State& s, int slot, int64_t keep) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load(std::memory_order_relaxed);
  while (now > keep) {
    if (!headroom.compare_exchange_weak(now, keep, std::memory_order_relaxed)) continue;
    s.slots[slot].granted.fetch_sub(now - keep, std::memory_order_relaxed);
    return now - keep;
  }
  return 0;
}

int64_t surrender(State& s, int slot) { return take_above(s, slot, 0); }

void receive_grant(State& s, int slot, int64_t granted, int64_t used) {
  s.slots[slot].granted.fetch_add(granted, std::memory_order_relaxed);
  s.slots[slot].headroom.fetch_add(granted - used, std::memory_order_relaxed);
}

CUresult refuse(int slot, uint64_t bytes) {
  State& s = state();
  s.slots[slot].refusals.fetch_add(1, std::memory_order_relaxed);
  s.mirror(slot);
  GPUROTA_DEBUG("slot %d: an allocation of %llu bytes is refused: the lease's limit", slot,
                static_cast<unsigned long long>(bytes));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace gpurota::interposer
