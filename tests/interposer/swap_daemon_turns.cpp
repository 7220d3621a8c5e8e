// The part of swap_daemon.cpp for gate orders and moves, which a tenant gets without asking.
#include "fake_wire.h"
#include "swap_daemon.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpurota::interposer_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kPatienceMs =
    10;  // how long a tenant may take to drain before a submission is let through

}  // namespace

void SwapDaemon::order(Tenant& tenant, std::uint32_t what) {
  gpurota_msg_swap_gate message{};
  message.header = {GPUROTA_MSG_SWAP_GATE, sizeof(message), ++tenant.gate_seq};
  message.order = what;
  send_plain(tenant.event, message);
}

bool SwapDaemon::moves(const Tenant& tenant) const {
  return std::ranges::any_of(tenant.gpus,
                             [](const Gpu& g) { return g.evict != 0 || g.restore != 0; });
}

bool SwapDaemon::after(Tenant& tenant, int most_ms) {
  tenant.next = Clock::now() + milliseconds(random_() % static_cast<unsigned>(most_ms));
  return true;
}

void SwapDaemon::evict_some(Tenant& tenant) {
  for (std::uint32_t slot = 0; slot < gpus_.size(); ++slot) {
    Gpu& gpu = tenant.gpus[slot];
    const std::uint64_t here = gpu.memory.resident_bytes;
    if (here == 0) continue;
    gpurota_msg_swap_move message{};
    message.header = {GPUROTA_MSG_SWAP_MOVE, sizeof(message), 0};
    message.slot = slot;
    message.direction = GPUROTA_SWAP_EVICT;
    const bool all = behaviour_.takes_away || random_() % 3 == 0;
    message.bytes = all ? here : random_() % here + 1;
    gpu.evict = message.bytes;
    send_plain(tenant.event, message);
  }
}

bool SwapDaemon::is_out(const Tenant& tenant) {
  return std::ranges::any_of(
      tenant.gpus, [](const Gpu& g) { return g.memory.movable_bytes > g.memory.resident_bytes; });
}

// Restores all memory, or as much as fits.
void SwapDaemon::restore(Tenant& tenant, bool all) {
  for (std::uint32_t slot = 0; slot < gpus_.size(); ++slot) {
    Gpu& gpu = tenant.gpus[slot];
    const std::uint64_t out = gpu.memory.movable_bytes - gpu.memory.resident_bytes;
    if (out == 0) continue;
    gpurota_msg_swap_move message{};
    message.header = {GPUROTA_MSG_SWAP_MOVE, sizeof(message), 0};
    message.slot = slot;
    message.direction = GPUROTA_SWAP_RESTORE;
    message.bytes = all ? out : random_() % out + 1;
    gpu.restore = message.bytes;
    send_plain(tenant.event, message);
  }
}

// Takes the next step for one tenant, if it is due.
void SwapDaemon::step(Tenant& tenant) {
  const bool in_time = Clock::now() >= tenant.next;
  const bool drained = tenant.status.gate_seq == tenant.gate_seq && tenant.status.busy == 0;
  switch (tenant.phase) {
    case Phase::kShut:
      if (!behaviour_.opens || !in_time) return;
      [[fallthrough]];
    case Phase::kOut:
      if (!behaviour_.opens || behaviour_.takes_away || !in_time) return;
      tenant.forgotten = std::exchange(behaviour_.forgets, false);
      if (!tenant.forgotten) restore(tenant, random_() % 2 == 0);
      tenant.phase = Phase::kRestoring;
      return;
    case Phase::kRestoring: {
      if (moves(tenant)) return;  // the tenant returns room that no block fits into
      if (!tenant.forgotten && is_out(tenant)) return restore(tenant, true);
      tenant.let_in = false;
      if (behaviour_.stays_shut) {
        tenant.phase = Phase::kClosing;
        answer_all(tenant);
        return;
      }
      order(tenant, GPUROTA_GATE_OPEN);
      tenant.phase = Phase::kOpen;
      answer_all(tenant);
      after(tenant, 60);
      if (tenant.forgotten) tenant.next += std::chrono::minutes(1);  // only a new connection helps
      return;
    }
    case Phase::kOpen:
      if (!(behaviour_.disturbs || behaviour_.takes_away) || !in_time) return;
      order(tenant, GPUROTA_GATE_CLOSE);
      tenant.phase = Phase::kClosing;
      tenant.next = Clock::now() + milliseconds(kPatienceMs);
      return;
    case Phase::kClosing:
      if (drained && (tenant.let_in || !behaviour_.stays_shut)) {
        tenant.phase = Phase::kEvicting;
        evict_some(tenant);
        ++evictions_;
        return;
      }
      if (!in_time || tenant.status.waiting == 0) return;
      order(tenant, GPUROTA_GATE_LET_ONE_THROUGH);
      tenant.let_in = true;
      ++let_through_;
      tenant.next = Clock::now() + milliseconds(kPatienceMs);
      return;
    case Phase::kEvicting:
      if (moves(tenant)) return;
      tenant.phase = Phase::kOut;
      after(tenant, 20);
      return;
  }
}

}  // namespace gpurota::interposer_test
