#include "interposer/gate/gated.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gate_part.h"
#include "interposer/gate/streams.h"

namespace gpurota::interposer {

// Another thread cannot query a thread's own default stream, so submissions to that stream are
// marked with an event.
GatePass::GatePass(GateClass what, CUstream stream, bool per_thread, bool waits) {
  if (!swapping()) return;
  GatePart& part = gate_of(state());
  int standing = -1;
  const auto captures = [&, stream, per_thread] {  // called only if the call has to wait
    if (is_capturing(stream, per_thread)) return true;
    standing = what == GateClass::kSubmits ? place_of_stream(stream, per_thread).slot : -1;
    if (standing >= 0) part.standing[standing].fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  mark_ = part.gate.enter(what, captures, waits);
  if (standing >= 0) part.standing[standing].fetch_sub(1, std::memory_order_relaxed);
  refused_ = mark_ == nullptr;
  marks_thread_stream_ = what == GateClass::kSubmits && !refused_ &&
                         (stream == CU_STREAM_PER_THREAD || (per_thread && stream == nullptr));
}

GatePass::~GatePass() {
  if (mark_ == nullptr) return;
  State& s = state();
  if (marks_thread_stream_) mark_thread_stream(s);
  gate_of(s).gate.leave(mark_);
}

}  // namespace gpurota::interposer

#include "interposer/gated_hooks.inc"
