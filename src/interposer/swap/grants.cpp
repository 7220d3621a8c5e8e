#include "interposer/swap/grants.h"

#include "abi/wire.h"
#include "interposer/os/config.h"
#include "interposer/os/socket.h"

namespace gpurota::interposer {
namespace {

constexpr int64_t kSendMs = 1000;

void take_off(uint64_t* from, uint64_t bytes) { *from -= bytes < *from ? bytes : *from; }

}  // namespace

void swap_lose(Swap& swap) {
  if (!swap.connected) return;
  swap.connected = false;
  if (swap.away_since.load() == 0) swap.away_since.store(now_ms());
  // The helper sees the end, and connects again.
  if (swap.event_fd > 0) shut_down(swap.event_fd - 1, swap.event_inode);
}

bool swap_send(Swap& swap, void* message, size_t size, uint16_t type, uint32_t seq) {
  if (!swap.connected) return false;
  ErrnoGuard guard;
  auto* header = static_cast<gpurota_msg_header*>(message);
  *header = {type, static_cast<uint16_t>(size), seq};
  const Socket event{swap.event_fd - 1, swap.event_inode, true};
  if (send_packet(event, message, size, now_ms() + kSendMs)) return true;
  swap_lose(swap);
  return false;
}

bool swap_send_ask(Swap& swap, const SwapAsk& ask) {
  gpurota_msg_swap_grow question{};
  question.slot = ask.slot;
  question.kind = ask.kind;
  question.bytes = ask.bytes;
  return swap_send(swap, &question, sizeof(question), GPUROTA_MSG_SWAP_GROW, ask.seq);
}

bool swap_gone(const State& s) {
  if (!swap_of(s).worker_started || s.link.lease_refused || s.link.crowded) return true;
  const int64_t since = swap_of(s).away_since.load();
  return since != 0 && now_ms() - since >= config().wait_ms;
}

namespace {

// With the books locked.
void tell_shrink(Swap& swap, int slot, uint64_t resident, uint64_t out, uint64_t wired,
                 uint64_t hosted) {
  if (resident == 0 && out == 0 && wired == 0 && hosted == 0) return;
  SwapBooks& books = swap.books[slot];
  take_off(&books.movable, resident + out);
  take_off(&books.out, out);
  take_off(&books.wired, wired);
  take_off(&books.hosted, hosted);
  gpurota_msg_swap_shrink message{};
  message.slot = static_cast<uint32_t>(slot);
  message.resident_bytes = resident;
  message.out_bytes = out;
  message.wired_bytes = wired;
  message.hosted_bytes = hosted;
  swap_send(swap, &message, sizeof(message), GPUROTA_MSG_SWAP_SHRINK, 0);
}

}  // namespace

void swap_shrink(int slot, uint64_t resident, uint64_t out, uint64_t wired, uint64_t hosted) {
  if (resident == 0 && out == 0 && wired == 0 && hosted == 0) return;
  State& s = state();
  {
    Lock lock(swap_of(s).books_mutex);
    swap_of(s).given_back.fetch_add(1);
    SwapBooks& books = s.books[slot];
    const uint64_t parked = out < books.parked ? out : books.parked;
    books.parked -= parked;
    tell_shrink(swap_of(s), slot, resident, out - parked, wired, hosted);
  }
  s.mirror(slot);
}

// The daemon granted a number of bytes for each context, the same for all contexts of a GPU.
void swap_context_returned(int slot, uint32_t left) {
  State& s = state();
  uint64_t bytes = 0;
  {
    Lock lock(swap_of(s).books_mutex);
    SwapBooks& books = s.books[slot];
    bytes = books.contexts / (left + 1);
    books.contexts -= bytes;
  }
  swap_shrink(slot, 0, 0, bytes);
}

void swap_park(int slot) {
  State& s = state();
  {
    Lock lock(swap_of(s).books_mutex);
    SwapBooks& books = s.books[slot];
    const uint64_t out = books.out;
    tell_shrink(swap_of(s), slot, 0, out, 0, 0);
    books.parked += out;
  }
  s.mirror(slot);
}

void swap_unpark(State& s) {
  Swap& swap = swap_of(s);
  uint64_t parked = 0;
  {
    Lock lock(swap.books_mutex);
    for (SwapBooks& books : swap.books) parked += books.parked;
  }
  if (parked == 0) return;
  // All steps are under one lock: an order to open the gate that came between them would find
  // nothing evicted.
  Lock gate_lock(swap.gate_mutex);
  swap.open_wanted = false;
  swap.gate.set(GateState::kAway);
  Lock lock(swap.books_mutex);
  for (SwapBooks& books : swap.books) {
    books.movable += books.parked;
    books.out += books.parked;
    books.parked = 0;
  }
  swap_lose(swap);
}

uint64_t swap_parked(int slot) {
  Swap& swap = swap_of(state());
  Lock lock(swap.books_mutex);
  return swap.books[slot].parked;
}

void swap_moved(int slot, gpurota_swap_direction direction, uint64_t bytes, uint64_t clean) {
  State& s = state();
  Lock lock(swap_of(s).books_mutex);
  SwapBooks& books = s.books[slot];
  if (direction == GPUROTA_SWAP_EVICT) {
    books.out += bytes;
  } else {
    take_off(&books.out, bytes);
  }
  gpurota_msg_swap_moved message{};
  message.slot = static_cast<uint32_t>(slot);
  message.direction = direction;
  message.clean_pages = static_cast<uint32_t>(clean / GPUROTA_CLEAN_PAGE);
  message.bytes = bytes;
  swap_send(swap_of(s), &message, sizeof(message), GPUROTA_MSG_SWAP_MOVED, 0);
}

void swap_order_ended(int slot, gpurota_swap_direction direction, uint32_t failed,
                      uint64_t returned) {
  if (failed == 0 && returned == 0) return;
  State& s = state();
  Lock lock(swap_of(s).books_mutex);
  gpurota_msg_swap_moved message{};
  message.slot = static_cast<uint32_t>(slot);
  message.direction = direction;
  message.failed = failed;
  message.returned = returned;
  swap_send(swap_of(s), &message, sizeof(message), GPUROTA_MSG_SWAP_MOVED, 0);
}

bool swap_say_status(uint32_t gate_seq, bool busy, uint32_t waiting, uint32_t ready,
                     uint64_t pinned) {
  State& s = state();
  Lock lock(swap_of(s).books_mutex);
  gpurota_msg_swap_status message{};
  message.gate_seq = gate_seq;
  message.busy = busy ? 1 : 0;
  message.waiting = waiting;
  message.ready = ready;
  message.pinned_bytes = pinned;
  return swap_send(swap_of(s), &message, sizeof(message), GPUROTA_MSG_SWAP_STATUS, 0);
}

void swap_say_here() {
  State& s = state();
  Swap& swap = swap_of(s);
  Lock lock(swap.books_mutex);
  if (!swap.hello_due || swap.event_fd == 0) return;
  swap.hello_due = false;
  swap.connected = true;
  gpurota_msg_swap_here here{};
  here.gate_open = swap.gate.state() == GateState::kOpen ? 1 : 0;
  here.slots = s.link.slot_count;
  for (uint32_t i = 0; i < s.link.slot_count; ++i) {
    const SwapBooks& books = swap.books[i];
    here.memory[i] = {books.movable, books.movable - books.out, books.wired};
    here.hosted_bytes[i] = books.hosted;
  }
  here.key[0] = swap.shares.key[0];
  here.key[1] = swap.shares.key[1];
  if (!swap_send(swap, &here, sizeof(here), GPUROTA_MSG_SWAP_HERE, 0)) return;
  for (const SwapAsk& ask : swap.asks) {
    if (ask.state.load() == kAskWaits && !swap_send_ask(swap, ask)) return;
  }
  swap.away_since.store(0);
  swap.gate.set_refusing(false);
}

void swap_connected(State& s, int fd, uint64_t inode) {
  {
    Lock lock(
        swap_of(s).gate_mutex);  // an order to open that was not carried out is no longer valid
    if (swap_of(s).gate.state() != GateState::kOpen) swap_of(s).open_wanted = false;
  }
  Lock lock(swap_of(s).books_mutex);
  swap_of(s).event_fd = fd + 1;
  swap_of(s).event_inode = inode;
  swap_of(s).connected = false;
  swap_of(s).hello_due = true;
  for (SwapDevice& device : swap_of(s).devices) {
    device.evict.store(0);  // orders of the last daemon
    device.restore.store(0);
  }
  swap_of(s).gate_seq.store(0);
  swap_of(s).gate.poke();
}

void swap_lost(State& s) {
  Lock lock(swap_of(s).books_mutex);
  swap_of(s).connected = false;
  swap_of(s).event_fd = 0;
  swap_of(s).hello_due = false;
  if (swap_of(s).away_since.load() == 0) swap_of(s).away_since.store(now_ms());
}

}  // namespace gpurota::interposer
