#include "interposer/account/holdings.h"

#include "abi/wire.h"
#include "interposer/account/headroom.h"
#include "interposer/account/link_calls.h"

namespace gpurota::interposer {
namespace {

bool is_understood(const State& s) {
  return (s.link.daemon_features & GPUROTA_FEATURE_HOLDING) != 0;
}

gpurota_msg_holding make_holding(int slot, gpurota_holding_kind kind, uint64_t key,
                                 uint64_t bytes) {
  gpurota_msg_holding message{};
  message.header.type = GPUROTA_MSG_HOLDING;
  message.slot = static_cast<uint32_t>(slot);
  message.kind = kind;
  message.key = key;
  message.bytes = bytes;
  return message;
}

bool ask_about(State& s, gpurota_msg_holding question, gpurota_msg_counted* answer) {
  return ask(s, &question, sizeof(question), GPUROTA_MSG_COUNTED, answer, sizeof(*answer));
}

// With Link::mutex held. False: no memory for the entry, or the key is that of another memory.
bool note(State& s, int slot, uint64_t key, uint64_t bytes) {
  Holding* holding = s.link.holdings.put(key);
  if (holding == nullptr) return false;
  if (holding->count != 0 && (holding->slot != slot || holding->bytes != bytes)) return false;
  *holding = {bytes, holding->count + 1, slot};
  return true;
}

}  // namespace

void hold_memory(int slot, uint64_t key, uint64_t bytes) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  if (!note(s, slot, key, bytes)) return;
  gpurota_msg_counted answer;
  // If the daemon is away, tell_holdings() tells the next daemon.
  if (connected(s) && is_understood(s)) {
    ask_about(s, make_holding(slot, GPUROTA_HOLDING_MINE, key, bytes), &answer);
  }
}

Answer join_memory(int slot, uint64_t key, uint64_t* bytes) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  *bytes = 0;
  if (!ensure_connected(s)) return why_not(s);
  if (!is_understood(s)) return Answer::kNo;
  gpurota_msg_counted answer;
  if (!ask_about(s, make_holding(slot, GPUROTA_HOLDING_JOIN, key, 0), &answer)) {
    return Answer::kAway;
  }
  if (answer.bytes >= kSaneBytes) return Answer::kNo;
  *bytes = answer.bytes;
  if (answer.status != GPUROTA_OK) return Answer::kNo;
  note(s, slot, key, answer.bytes);
  const auto charged = static_cast<int64_t>(answer.bytes);
  if (!swapping()) receive_grant(s, slot, charged, charged);
  s.mirror(slot);
  return Answer::kYes;
}

void leave_memory(int slot, uint64_t key, uint64_t bytes, Left left) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  const auto amount = static_cast<int64_t>(bytes);
  Holding* holding = s.link.holdings.find(key);
  const bool is_noted = holding != nullptr && holding->count != 0;
  Holding gone{};
  if (is_noted && --holding->count == 0) s.link.holdings.take(key, &gone);
  if (!is_noted || !connected(s) || !is_understood(s)) {
    if (left == Left::kCharged) credit_headroom(s, slot, amount);
    return;
  }
  int64_t returned = amount;
  if (left == Left::kCharged) {
    s.slots[slot].granted.fetch_sub(amount, std::memory_order_relaxed);
  } else {
    returned = swapping() ? 0 : surrender_some(s, slot, amount);
  }
  gpurota_msg_holding message = make_holding(slot, GPUROTA_HOLDING_END, key, bytes);
  message.returned_bytes = static_cast<uint64_t>(returned);
  tell(s, &message, sizeof(message));
  // If the message was not sent, the bytes were not returned: the next HELLO counts them.
  if (!s.link.call.open) receive_grant(s, slot, returned, 0);
  if (s.slots[slot].asking.load() != 0) s.slots[slot].freed.fetch_add(1);
  s.mirror(slot);
}

void tell_holdings(State& s) {
  if (!is_understood(s)) return;
  s.link.holdings.for_each([&](uint64_t key, const Holding& holding) {
    for (uint32_t i = 0; i < holding.count && s.link.call.open; ++i) {
      gpurota_msg_counted answer;
      ask_about(s, make_holding(holding.slot, GPUROTA_HOLDING_MINE, key, holding.bytes), &answer);
    }
  });
}

}  // namespace gpurota::interposer
