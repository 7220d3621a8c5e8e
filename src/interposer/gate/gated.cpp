#include "interposer/gate/gated.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gate_part.h"
#include "interposer/gate/streams.h"

namespace gpurota::interposer {

void GatePass::enter_gate(GateClass what, bool waits) {
  GatePart& part = gate_of(state());
  int standing = -1;
  const auto captures = [&] {  // called only if the call has to wait
    if (is_capturing(stream_, per_thread_)) return true;
    standing = submits_ ? place_of_stream(stream_, per_thread_).slot : -1;
    if (standing >= 0) part.standing[standing].fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  mark_ = part.gate.enter(what, captures, waits);
  if (standing >= 0) part.standing[standing].fetch_sub(1, std::memory_order_relaxed);
  refused_ = mark_ == nullptr;
}

GatePass::GatePass(GateClass what, CUstream stream, bool per_thread, bool waits)
    : stream_(stream), per_thread_(per_thread), submits_(what == GateClass::kSubmits) {
  if (swapping()) {
    enter_gate(what, waits);
  } else if (submits_ && waits) {
    before_submission(state(), stream, per_thread);
  }
}

GatePass::~GatePass() {
  if (!submits_ && mark_ == nullptr) return;
  State& s = state();
  if (mark_ == nullptr) {
    if (!refused_) after_submission(s, stream_, per_thread_);
    return;
  }
  const bool thread_stream = stream_ == CU_STREAM_PER_THREAD || (per_thread_ && stream_ == nullptr);
  // Another thread cannot query a thread's own default stream, so an event marks the submission.
  if (submits_ && thread_stream) mark_thread_stream(s);
  gate_of(s).gate.leave(mark_);
}

}  // namespace gpurota::interposer

#include "interposer/gated_hooks.inc"
