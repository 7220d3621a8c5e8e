#include "interposer/account/park_orders.h"

#include "abi/wire_park.h"
#include "interposer/account/state.h"
#include "interposer/account/swap_table.h"
#include "interposer/os/debug.h"

#include <cerrno>
#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr int64_t kPaceMs = 1;
constexpr int64_t kReadyMs = 1000;

static_assert(kParkHostMemory == GPUROTA_PARK_HOST_MEMORY && kParkImports == GPUROTA_PARK_IMPORTS);

void set_state(State& s, ParkState state) {
  s.parking.set(state);
  if (swapping()) g_swap.poke(s);  // the worker rests, or works again
}

}  // namespace

bool take_park_message(State& s, const void* packet, long size) {
  gpurota_msg_park message;
  if (size < static_cast<long>(sizeof(message))) return false;
  memcpy(&message, packet, sizeof(message));
  GPUROTA_DEBUG("parking: order %u", message.order);
  switch (message.order) {
    case GPUROTA_PARK_CLOSE:
      s.park_orders.closes = true;
      s.park_orders.seq = message.header.seq;
      set_state(s, s.park_orders.may_be_locked ? ParkState::kCloses : ParkState::kRests);
      return true;
    case GPUROTA_PARK_PARKED:
      if (s.parking.state() == ParkState::kCloses && s.park_orders.may_be_locked) {
        set_state(s, ParkState::kParked);
      }
      return true;
    case GPUROTA_PARK_RUN:
      s.park_orders = {};
      if (s.parking.state() != ParkState::kRuns) set_state(s, ParkState::kRuns);
      return true;
    default:
      return true;  // an order of a newer daemon
  }
}

bool report_park_ready(State& s, const Socket& event) {
  if (!s.park_orders.closes) return true;
  if (s.parking.state() == ParkState::kRests && s.parking.worker_rests()) {
    set_state(s, ParkState::kCloses);
  }
  if (s.parking.state() != ParkState::kCloses || !s.parking.nobody_asks()) return true;
  gpurota_msg_park_ready ready{};
  ready.header = {GPUROTA_MSG_PARK_READY, sizeof(ready), s.park_orders.seq};
  ready.obstacles = s.parking.obstacles.load();
  errno = 0;
  const bool sent = send_packet(event, &ready, sizeof(ready), now_ms() + kReadyMs);
  // Only a daemon that is gone has certainly not read the message.
  if (!sent && (errno == EPIPE || errno == ECONNRESET)) return false;
  s.park_orders.closes = false;
  s.park_orders.may_be_locked = true;
  return sent;
}

int64_t park_wait_ms(const State& s, int64_t otherwise) {
  return s.park_orders.closes ? kPaceMs : otherwise;
}

void forget_park_order(State& s) {
  if (!s.park_orders.closes) return;
  s.park_orders.closes = false;
  if (!s.park_orders.may_be_locked) set_state(s, ParkState::kRuns);
}

}  // namespace gpurota::interposer
