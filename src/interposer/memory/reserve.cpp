#include "interposer/memory/reserve.h"

#include "interposer/account/link.h"
#include "interposer/memory/pool_charge.h"

namespace gpurota::interposer {
namespace {

// For the calls of others, whose threads may be off their processor for a while; and with all
// questions.
constexpr int kPatience = 200;  // ms
// Of questions; each but the first because something was freed while the last was under way.
constexpr int kMostQuestions = 64;

// While it lives, what is put back is counted. Who puts back looks for it after the headroom is
// changed, and it looks at the headroom after it has begun: one of the two has seen the other.
class Refusal {
 public:
  explicit Refusal(Slot& slot) : slot_(slot) { slot_.asking.fetch_add(1); }
  ~Refusal() { slot_.asking.fetch_sub(1); }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

 private:
  Slot& slot_;
};

// Asks the daemon, then lets idle pools go, and believes a refusal only if nothing was put back
// since before it was asked: what this thread's pools let go another may have given back with a
// question of its own, and then it is the daemon's. `seen`: of Slot::freed, as the refusal has seen
// it.
Answer ask(State& s, int slot, int64_t bytes, int64_t deadline, uint32_t* seen) {
  const std::atomic<uint32_t>& freed = s.slots[slot].freed;
  for (int i = 1;; ++i) {
    *seen = freed.load();
    const Answer answer = grow(slot, GPUROTA_GROW_MEMORY, static_cast<uint64_t>(bytes));
    if (answer == Answer::kYes) return answer;
    if (beyond_limit(s, slot, bytes)) return Answer::kNo;  // waiting does not help
    if (i == 1) reclaim_pools(slot);
    if (take(s, slot, bytes)) return Answer::kYes;
    if (answer != Answer::kNo || freed.load() == *seen) return answer;
    if (i == kMostQuestions || now_ms() >= deadline) return answer;
  }
}

// What others have under way is more than they will keep: a refusal waits for those that began
// before it.
Answer outlast(State& s, int slot, int64_t bytes, int64_t deadline, Flight* own, uint32_t seen,
               Answer answer) {
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
  if (taken) return Answer::kYes;
  return ledger.freed.load() != seen ? ask(s, slot, bytes, deadline, &seen) : answer;
}

}  // namespace

// The page shows the charge before the driver takes the memory: a look of the daemon in between
// must not find more memory than is said to be in use.
Answer reserve(int slot, int64_t bytes, Flight* own) {
  State& s = state();
  Answer answer = take(s, slot, bytes) ? Answer::kYes : Answer::kNo;
  if (answer != Answer::kYes) {
    ErrnoGuard guard;
    const Refusal refusal(s.slots[slot]);
    const int64_t deadline = now_ms() + kPatience;
    uint32_t seen = 0;
    answer = ask(s, slot, bytes, deadline, &seen);
    if (answer != Answer::kYes && !beyond_limit(s, slot, bytes)) {
      answer = outlast(s, slot, bytes, deadline, own, seen, answer);
    }
  }
  if (answer == Answer::kYes) s.mirror(slot);
  return answer;
}

}  // namespace gpurota::interposer
