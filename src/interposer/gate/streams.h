// Finds the work that a swap tenant has in flight: its streams, and whether any of them captures.
//
// Streams are known from their creation. Streams are queried (cuStreamQuery) rather than marked
// with events at each launch; while anything captures no stream is queried, as a question may end a
// capture, and the tenant is busy. Streams that cannot be queried, the default streams of threads,
// are marked with an event at each submission.
#pragma once

#include "interposer/gate/gate_part.h"

namespace gpurota::interposer {

// On which GPUs, a bit for each slot, something that was submitted is not done; on all while
// something captures. The worker's, with GatePart::contexts_mutex held.
uint32_t busy_slots(State& s);
inline constexpr uint32_t kAllBusy = UINT32_MAX;

// The thread has submitted something to its own default stream.
void mark_thread_stream(State& s);

// Waits until what the GPUs were given so far is done, as the driver does before it frees. False:
// something captures, and asking could end that; or it is not done at the deadline (ms; 0: none).
bool wait_for_work(State& s, int64_t deadline_ms = 0);

// A context is gone, and with it its streams.
void forget_streams(State& s, CUcontext context);

// The key of a stream among all threads.
uint64_t key_of_stream(CUstream stream, bool per_thread);
// The key of the work of a context's streams that are gone, for which there is no event yet.
uint64_t key_of_unmarked(CUcontext context);

}  // namespace gpurota::interposer
