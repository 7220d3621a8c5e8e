// Finds the work that a swap tenant has in flight: its streams, and whether any of them captures.
//
// Streams are recorded when they are created, and queried (cuStreamQuery) rather than marked with
// events at each launch. While anything captures no stream is queried, as a query may end a
// capture, and the tenant counts as busy. The default streams of threads cannot be queried, so each
// submission marks them with an event.
#pragma once

#include "interposer/gate/gate_part.h"

namespace gpurota::interposer {

// A bit for each slot whose GPU has unfinished submitted work; kAllBusy while something captures.
// For the worker, with GatePart::contexts_mutex held.
uint32_t busy_slots(State& s);
inline constexpr uint32_t kAllBusy = UINT32_MAX;

// Call after the thread has submitted something to its own default stream.
void mark_thread_stream(State& s);

// Waits until the work given to the GPUs so far is done, as the driver does before it frees. False:
// something captures, and a query could end the capture; or the work is not done at the deadline
// (ms; 0: none).
bool wait_for_work(State& s, int64_t deadline_ms = 0);

// Removes the streams of a context that was destroyed.
void forget_streams(State& s, CUcontext context);

// Whether the work before an event of ours has ended. Any thread; harms no capture.
bool is_over(CUevent event);

// The stream as our own calls name it: they are not made with a default stream per thread.
inline CUstream meant_stream(CUstream stream, bool per_thread) {
  return per_thread && stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}
// A key that identifies the stream across all threads.
uint64_t key_of_stream(CUstream stream, bool per_thread);
// The key for work of a context's destroyed streams, for which there is no event yet.
uint64_t key_of_unmarked(CUcontext context);

}  // namespace gpurota::interposer
