#include "interposer/swap/worker.h"

#include "interposer/driver/own_calls.h"
#include "interposer/gate/streams.h"
#include "interposer/os/debug.h"
#include "interposer/os/threads.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/freed.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/hasher.h"
#include "interposer/swap/mover.h"
#include "interposer/swap/share.h"
#include "interposer/swap/worker_parts.h"

#include <sys/prctl.h>

namespace gpurota::interposer {
namespace {

// The time between rounds: kDrainingUs while work drains; kTurnsUs while turns are taken, because a
// lease gives its turn up when its work has ended; kCalmUs if no turn was taken for a while;
// kShutUs while the gate is shut and nothing is in flight.
constexpr int64_t kDrainingUs = 100;
constexpr int64_t kSlowDrainingUs = 1000;  // once draining takes longer than kQuickMs
constexpr int64_t kQuickMs = 20;
// The pause between pinning one region of host memory and the next: kPinningUs while turns are
// taken, else kPinningAheadUs, because a program that takes no turns must not slow down (with 1 ms
// it lost 1.4 % of its steps).
constexpr int64_t kPinningUs = 1000;
constexpr int64_t kPinningAheadUs = 4000;
constexpr int64_t kTurnsUs = 2000;
constexpr int64_t kCalmUs = 50000;
constexpr int64_t kShutUs = 20000;
constexpr int64_t kTurnsAreTakenMs = 10000;  // after a turn was last taken away
constexpr uint64_t kPinnedStep = uint64_t{256} << 20;
// If an order to open the gate has waited this long and memory is still evicted, the daemon's books
// are wrong.
constexpr int64_t kWrongBooksMs = 2000;

// Counts the submissions that wait at the gate for GPUs on which nothing is in flight. Work in
// flight on another GPU may wait for such a submission, which adds no work to the other GPU.
uint32_t count_ready(const Worker& w, uint32_t waiting) {
  uint32_t ready = 0;
  for (uint32_t i = 0; i < w.s.link.slot_count; ++i) {
    if ((w.busy_slots >> i & 1) == 0) ready += w.swap.standing[i].load(std::memory_order_relaxed);
  }
  return ready < waiting ? ready : waiting;
}

// The gate.

// Opens the gate if that is ordered and all memory is resident. Returns whether the last order has
// been carried out.
bool carry_out_order(Worker& w, uint32_t* seq) {
  Lock lock(w.swap.gate_mutex);
  *seq = w.swap.gate_seq.load();
  const bool opens = w.swap.open_wanted && w.swap.gate.state() != GateState::kOpen;
  if (!opens || out_bytes(w.swap) == 0) w.cannot_open_since = 0;
  if (!opens) return true;
  if (out_bytes(w.swap) != 0) {
    if (w.cannot_open_since == 0) w.cannot_open_since = now_ms();
    return false;
  }
  forget_copies(w.swap);
  w.swap.drained.store(0, std::memory_order_release);
  w.swap.gate.set(GateState::kOpen);
  return true;
}

// Connects again if the daemon's books are wrong: a new connection begins with SWAP_HERE, which
// corrects them.
void correct_books(Worker& w) {
  if (w.cannot_open_since == 0 || now_ms() - w.cannot_open_since < kWrongBooksMs) return;
  GPUROTA_DEBUG("told to open the gate while %llu bytes are out: connecting anew",
                static_cast<unsigned long long>(out_bytes(w.swap)));
  w.cannot_open_since = 0;
  Lock lock(w.swap.books_mutex);
  swap_lose(w.swap);
}

void refuse_if_gone(Worker& w) {
  if (w.swap.away_since.load() == 0 || w.swap.gate.state() == GateState::kOpen) return;
  if (swap_gone(w.s)) w.swap.gate.set_refusing(true);
}

timespec pause(Worker& w, bool more) {
  const bool open = w.swap.gate.state() == GateState::kOpen;
  const int64_t last = w.swap.last_close_ms.load();
  const int64_t since = last != 0 ? now_ms() - last : kTurnsAreTakenMs;
  const bool turns = w.swap.takes_turns.load() == GPUROTA_TURNS_TAKEN || since < kTurnsAreTakenMs;
  int64_t us = turns ? kTurnsUs : kCalmUs;
  if (!open) us = !w.busy ? kShutUs : since < kQuickMs ? kDrainingUs : kSlowDrainingUs;
  if (more) us = turns ? kPinningUs : kPinningAheadUs;
  return {0, static_cast<long>(us) * 1000};
}

// State that was sent on one connection does not count for the next, so all of it is sent again on
// a new connection.
void begin_connection(Worker& w) {
  {
    Lock lock(w.swap.books_mutex);
    if (!w.swap.hello_due || w.swap.event_fd == 0) return;
  }
  w.told = false;
  swap_say_here();
}

// Whether the program has submitted since the last round, or holds back submissions. A program that
// makes small submissions is at work, although in most rounds nothing is in flight.
bool is_submitting(Worker& w) {
  const uint32_t before = w.submissions;
  w.submissions = w.swap.gate.submissions();
  const bool submits = w.submissions != before || w.swap.held_back.load() != 0;
  return submits && w.swap.gate.state() == GateState::kOpen;
}

// Runs one round. True: there is more to prepare. The worker does not search for the driver: a
// search takes the loader's lock, and nothing is in flight before the program has loaded the
// driver. While the process is being parked or is parked, the worker does not call the driver, and
// nothing is in flight.
bool run_round(Worker& w) {
  uint32_t seq = 0;
  const ParkRound round(w.s.parking);
  if (!g_driver_found.load(std::memory_order_acquire) || round.rests()) {
    const bool done = carry_out_order(w, &seq);
    w.busy = !w.swap.gate.wait_inside(now_ms());
    if (done) tell(w, seq);
    return false;
  }
  const RelaxedCapture relaxed;
  carry_out_moves(w);
  const bool done = carry_out_order(w, &seq);
  const uint64_t freed = w.swap.freed_last.load();
  const bool in_flight = is_busy(w);
  w.busy = is_submitting(w) || in_flight;
  if (done) tell(w, seq);
  swap_end_freed(w.s, in_flight ? 0 : freed);
  answer_opens(w.s);
  prepare_hashing(w.s);
  w.prepares = prepare_host_memory(w);
  return w.prepares;
}

void* run_worker(void* argument) {
  State& s = *static_cast<State*>(argument);
  ::syscall(SYS_prctl, PR_SET_NAME, "gpurota-swap", 0, 0, 0);
  Worker w{s, swap_of(s)};
  for (;;) {
    const uint32_t seen = swap_of(s).gate.changes().load();
    begin_connection(w);
    refuse_if_gone(w);
    correct_books(w);
    const timespec wait = pause(w, run_round(w));
    futex_wait(&swap_of(s).gate.changes(), seen, &wait);
  }
  return nullptr;
}

}  // namespace

// First checks that no thread is inside the gate: all submitted work is then in a stream.
bool is_busy(Worker& w) {
  const bool inside = !w.swap.gate.wait_inside(now_ms());
  Lock lock(w.swap.contexts_mutex);
  w.busy_slots = busy_slots(w.s);
  return inside || w.busy_slots != 0;
}

void tell(Worker& w, uint32_t seq) {
  const uint32_t waiting = w.swap.gate.waiting();
  const uint32_t ready = count_ready(w, waiting);
  const uint64_t pinned = pinned_bytes(w.swap);
  // While regions are pinned one after the other, only steps of kPinnedStep are reported.
  const bool pinned_differs =
      w.prepares ? pinned / kPinnedStep != w.told_pinned / kPinnedStep : pinned != w.told_pinned;
  if (w.told && seq == w.told_seq && w.busy == w.told_busy && waiting == w.told_waiting &&
      ready == w.told_ready && !pinned_differs) {
    return;
  }
  w.told = swap_say_status(seq, w.busy, waiting, ready, pinned);
  w.told_pinned = pinned;
  w.told_ready = ready;
  w.told_seq = seq;
  w.told_busy = w.busy;
  w.told_waiting = waiting;
}

bool begin_swapping(State& s) {
  if (swapping()) return true;
  swap_of(s).gate.set(GateState::kShut);
  swap_of(s).away_since.store(now_ms());
  ErrnoGuard guard;
  uint64_t(&key)[2] = swap_of(s).shares.key;
  if (::syscall(SYS_getrandom, key, sizeof(key), 0) != static_cast<long>(sizeof(key))) {
    key[0] = key[1] = 0;
  }
  swap_of(s).worker_started = start_thread(run_worker, &s);
  if (!swap_of(s).worker_started) {
    GPUROTA_DEBUG("no thread for the swap lease: it cannot be used");
    return false;
  }
  s.roles.fetch_or(kSwaps, std::memory_order_release);
  return true;
}

void swap_forget_context(CUcontext context) {
  State& s = state();
  forget_streams(s, context);
  forget_device_context(s, context);
}

}  // namespace gpurota::interposer
