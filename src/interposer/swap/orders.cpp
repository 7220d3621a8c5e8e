#include "interposer/swap/orders.h"

#include "abi/wire.h"
#include "interposer/os/debug.h"
#include "interposer/swap/share.h"
#include "interposer/swap/tenant.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

// A field that an older daemon does not send is 0.
template <typename Message>
bool parse(const void* packet, long size, Message* out, size_t least = sizeof(Message)) {
  if (size < static_cast<long>(least)) return false;
  *out = Message{};
  memcpy(out, packet,
         static_cast<size_t>(size) < sizeof(Message) ? static_cast<size_t>(size) : sizeof(Message));
  return true;
}

void on_terms(Swap& swap, const gpurota_msg_swap_terms& terms) {
  swap.host_bytes.store(terms.host_bytes);
  swap.pinned_bytes.store(terms.pinned_bytes);
  swap.kept_bytes.store(terms.kept_bytes);
  swap.copy_all.store(terms.copy_all);
  swap.takes_turns.store(terms.takes_turns);
  swap.gate.poke();
}

// Takes the daemon's answer and enters the grant in the books, as one step.
bool on_grown(State& s, const gpurota_msg_swap_grown& answer) {
  Lock lock(swap_of(s).books_mutex);
  for (SwapAsk& ask : swap_of(s).asks) {
    if (ask.state.load() != kAskWaits || ask.seq != answer.header.seq) continue;
    const bool context = ask.kind == GPUROTA_SWAP_CONTEXT;
    if (answer.slot != ask.slot || answer.bytes >= kSaneBytes) return false;
    if (answer.status == GPUROTA_OK) {
      if (!context && answer.bytes != ask.bytes) return false;
      SwapBooks& books = s.books[ask.slot];
      (ask.kind == GPUROTA_SWAP_MOVABLE  ? books.movable
       : ask.kind == GPUROTA_SWAP_HOSTED ? books.hosted
                                         : books.wired) += answer.bytes;
      if (context) books.contexts += answer.bytes;
    }
    ask.granted = answer.bytes;
    ask.status = answer.status;
    ask.state.store(kAskAnswered, std::memory_order_release);
    futex_wake(&ask.state, 1);
    return true;
  }
  return true;  // the thread that asked has given up
}

// The worker opens the gate, because it knows whether all memory is resident.
bool on_gate(State& s, const gpurota_msg_swap_gate& message) {
  Swap& swap = swap_of(s);
  {
    Lock lock(swap.gate_mutex);
    switch (message.order) {
      case GPUROTA_GATE_OPEN:
        swap.open_wanted = true;
        break;
      case GPUROTA_GATE_CLOSE:
        swap.open_wanted = false;
        if (swap.gate.state() == GateState::kOpen) swap.gate.set(GateState::kShut);
        swap.last_close_ms.store(now_ms());
        break;
      case GPUROTA_GATE_LET_ONE_THROUGH:
        swap.gate.let_one_through();
        break;
      default:
        return true;  // an order of a newer daemon
    }
    swap.gate_seq.store(message.header.seq);
  }
  GPUROTA_DEBUG("gate order %u: %s", message.header.seq,
                message.order == GPUROTA_GATE_OPEN    ? "open"
                : message.order == GPUROTA_GATE_CLOSE ? "close"
                                                      : "let one through");
  swap.gate.poke();
  return true;
}

bool on_move(State& s, const gpurota_msg_swap_move& message) {
  if (message.slot >= s.link.slot_count || message.bytes >= kSaneBytes) return false;
  SwapDevice& device = swap_of(s).devices[message.slot];
  (message.direction == GPUROTA_SWAP_EVICT ? device.evict : device.restore)
      .fetch_add(message.bytes);
  swap_of(s).gate.poke();
  return true;
}

}  // namespace

void poke_worker(State& s) { swap_of(s).gate.poke(); }

bool take_swap_order(State& s, const void* packet, long size, Descriptors* fds) {
  gpurota_msg_header header;
  if (!parse(packet, size, &header)) return false;
  switch (header.type) {
    case GPUROTA_MSG_SWAP_TERMS: {
      gpurota_msg_swap_terms terms;
      if (!parse(packet, size, &terms, GPUROTA_SWAP_TERMS_LEAST)) return false;
      on_terms(swap_of(s), terms);
      return true;
    }
    case GPUROTA_MSG_SWAP_GROWN: {
      gpurota_msg_swap_grown answer;
      return parse(packet, size, &answer) && on_grown(s, answer);
    }
    case GPUROTA_MSG_SWAP_GATE: {
      gpurota_msg_swap_gate order;
      return parse(packet, size, &order) && on_gate(s, order);
    }
    case GPUROTA_MSG_SWAP_MOVE: {
      gpurota_msg_swap_move order;
      return parse(packet, size, &order) && on_move(s, order);
    }
    case GPUROTA_MSG_SWAP_OPEN: {
      gpurota_msg_open question;
      if (!parse(packet, size, &question)) return false;
      take_open(s, question.name, fds->take(0));
      return true;
    }
    default:
      return true;
  }
}

}  // namespace gpurota::interposer
