// The daemon's orders about parking (abi/wire_park.h), for the helper thread only.
#pragma once

#include "interposer/os/socket.h"

#include <cstdint>

namespace gpurota::interposer {

struct State;

// The order that the helper thread carries out.
struct ParkOrders {
  bool closes;  // PARK_READY is due
  uint32_t seq;
  bool may_be_locked;  // PARK_READY was sent, so only the daemon knows when questions may go on
};

// Handles a PARK message. False: the connection is to be given up. A message of another type is
// left alone.
bool take_park_message(State& s, const void* packet, long size);
// Sends PARK_READY if it is due and the process is ready by now; does not wait until the process is
// ready. False: the connection is to be given up.
bool report_park_ready(State& s, const Socket& event);
// How long the helper thread may wait for the next message.
int64_t park_wait_ms(const State& s, int64_t otherwise);
// The connection has ended: a process that has never sent PARK_READY runs on.
void forget_park_order(State& s);

}  // namespace gpurota::interposer
