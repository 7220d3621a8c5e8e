// Latency classes and shares of the compute time in a process (docs/design/latency.md,
// docs/design/compute-shares.md). A process of an interactive lease marks its bursts of work
// (bursts.h); a process beside such a lease holds back submissions meanwhile (holds.h), and bounds
// what it has in flight (in_flight.h). On a GPU whose compute time is divided, a process marks its
// bursts, waits for its windows (windows.h), and bounds what it has in flight.
//
// Nothing here asks the daemon. Any thread. A process without these roles never comes here.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/account/state.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/bursts.h"
#include "interposer/gate/holds.h"
#include "interposer/gate/in_flight.h"
#include "interposer/gate/windows.h"

namespace gpurota::interposer {

struct Latency {
  Bursts bursts;
  Holds holds;
  InFlight in_flight;
  Windows windows;
  std::atomic<uint32_t> waiting;  // threads that wait for a window; shown in the page
};

// The next three functions go around a submission to the stream. A submission that is recorded into
// a graph is left alone.
//
// wait_for_others() holds the submission back for interactive leases, and until the process has a
// window; then it bounds what is in flight. A thread inside the gate must not call it, because
// nobody could take the turn away meanwhile. `overlaps`: the submission may begin while the
// previous one still runs (InFlight).
void wait_for_others(State& s, CUstream stream, bool per_thread, bool overlaps);
// Counts the submission. Returns the key of the stream if the submission is part of a burst, else
// 0: give that to after_submission().
uint64_t before_submission(State& s, CUstream stream, bool per_thread);
void after_submission(State& s, uint64_t key);

// An event was recorded in the stream.
void note_event(State& s, CUevent event, CUstream stream, bool per_thread);
// The stream was made to wait for the event.
void note_wait(State& s, CUevent event, CUstream stream, bool per_thread);

// Where the stream is now.
StreamMark mark_stream(State& s, CUstream stream, bool per_thread);
// Where the event's stream was when the event was recorded. False: not known.
bool mark_event(State& s, CUevent event, StreamMark* out);
// Where these streams of the context are now. nullptr: of the current context.
Bursts::AllMarks mark_streams(State& s, Bursts::Which which, CUcontext context);
void note_end_of_all(State& s, const Bursts::AllMarks& marks);
// The work up to the mark has ended.
void note_end(State& s, const StreamMark& mark);

// The roles of a process that says when it has work.
inline constexpr uint32_t kSaysWork = kMarksBursts | kTakesWindows;
inline bool marks_bursts() { return (roles() & kSaysWork) != 0; }

// Makes `call()`, whose success means that all work of these streams that was given before has
// ended.
template <typename Call>
CUresult noting_end_of(Bursts::Which which, CUcontext context, Call call) {
  if (!marks_bursts()) return call();
  const Bursts::AllMarks marks = mark_streams(state(), which, context);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) note_end_of_all(state(), marks);
  return result;
}

// The same for one stream. The legacy default stream waits for all streams that are blocking.
template <typename Call>
CUresult noting_end(CUstream stream, bool per_thread, Call call) {
  if (!marks_bursts()) return call();
  if (is_legacy_stream(stream, per_thread)) {
    return noting_end_of(Bursts::Which::kBlocking, nullptr, call);
  }
  const StreamMark mark = mark_stream(state(), stream, per_thread);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) note_end(state(), mark);
  return result;
}

// The stream is destroyed, and the context was.
void forget_stream_work(State& s, CUstream stream);
void forget_context_work(State& s, CUcontext context);

}  // namespace gpurota::interposer
