// The connection to gpurotad: docs/design/tenant-protocol.md from the tenant's side.
//
// Any thread of the program may call these functions. Each takes Link::mutex for one question,
// unless the caller must hold it. The helper thread (helper.cpp) answers the daemon's questions.
// The daemon's identity is not checked, but its messages are: a message that does not fit the
// protocol ends the connection, and without a connection the daemon counts as away.
#pragma once

#include "abi/wire.h"
#include "interposer/account/answer.h"
#include "interposer/account/state.h"
#include "interposer/os/socket.h"

#include <cstdint>

namespace gpurota::interposer {

// Makes this process a tenant. The first call waits for the daemon as long as a request for more
// memory does.
bool attach();

// Like attach(), but does not wait; for callers that can continue without being a tenant.
bool attach_now();

inline bool attached() { return state().attached.load(std::memory_order_acquire) != 0; }

// Tells the daemon how many contexts live on a slot, and waits until it has measured their memory.
// The figure is exact while the program has allocated nothing.
void report_contexts(int slot);

// Exact figures for a slot; false if the daemon is away.
bool query(int slot, uint64_t* limit, uint64_t* available);

// Keeps those of `pids` that are processes of the lease, and returns their number. -1: the daemon
// cannot tell.
int keep_members(int32_t* pids, int count);

// Asks for a socket to the process that shares `name`, over which that process sends descriptors
// (wire_share.h). The caller closes the socket. kNo: no process shares `name` with this process.
// kAway: ask again in a moment. `own_lease`: the other process is of this lease.
Answer ask_to_open(const gpurota_shared_name& name, Socket* out, bool* own_lease);

// The longest that one attempt may block the program. A running daemon answers in microseconds.
// While the daemon is starting, systemd holds its connections, and the answer comes within a second
// or two. A suspended daemon does not answer.
constexpr int64_t kHandshakeMs = 5000;
// Makes one attempt to connect, and returns whether it succeeded. With Link::mutex held.
bool reconnect_once(State& s, int64_t patience_ms = kHandshakeMs);
// With Link::mutex held: ends the connection.
void disconnect(State& s);

// Starts the helper thread if it is not running. With Link::mutex held.
void start_helper(State& s);

}  // namespace gpurota::interposer
