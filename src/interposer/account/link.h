// The connection to gpurotad: docs/design/tenant-protocol.md from the tenant's side.
//
// Any thread of the program calls in, holding Link::mutex for the length of one question; the
// helper thread (helper.cpp) answers what the daemon asks. The daemon is trusted to be what it
// says, but its messages are checked like anybody's: what does not fit the protocol ends the
// connection, and a connection that ends is a daemon that is away.
#pragma once

#include "abi/wire.h"
#include "interposer/account/answer.h"
#include "interposer/account/state.h"
#include "interposer/os/socket.h"

#include <cstdint>

namespace gpurota::interposer {

// Makes this process a tenant. The first call waits for the daemon as growth does.
bool attach();

// The same, at once or not at all: for who can do without.
bool attach_now();

inline bool attached() { return state().attached.load(std::memory_order_acquire) != 0; }

// Tells how many contexts live on a slot, and waits until the daemon has measured what they take:
// while the program allocates nothing yet, that figure is exact.
void report_contexts(int slot);

// Exact figures for a slot; false if the daemon is away.
bool query(int slot, uint64_t* limit, uint64_t* available);

// Keeps those of `pids` that are processes of the lease; how many. -1: the daemon cannot say.
int keep_members(int32_t* pids, int count);

// A socket to the process that shares this, over which it sends descriptors (wire_share.h); the
// caller's to close. kNo: nobody does, or not with this process; kAway: to be asked again in a
// moment. `own_lease`: its process is of this lease.
Answer ask_to_open(const gpurota_shared_name& name, Socket* out, bool* own_lease);

// A daemon that is there answers in microseconds, and one that is being started, for which systemd
// takes connections, in a second or two; one that was stopped must not hold a program for longer
// than this per attempt.
constexpr int64_t kHandshakeMs = 5000;
// For the helper thread, with Link::mutex held: one attempt to be connected, and whether it worked.
bool reconnect_once(State& s, int64_t patience_ms = kHandshakeMs);
// With Link::mutex held: ends the connection.
void disconnect(State& s);

// Starts the helper thread if it does not run. With Link::mutex held.
void start_helper(State& s);

}  // namespace gpurota::interposer
