#include "interposer/gated.h"

#include "interposer/state.h"
#include "interposer/swap/streams.h"

namespace gpurota::interposer {

// A default stream of the thread's own cannot be asked by another: what goes there is marked.
GatePass::GatePass(GateClass what, CUstream stream, bool per_thread) {
  if (!swapping()) return;
  mark_ = state().swap.gate.enter(what, [=] { return is_capturing(stream, per_thread); });
  refused_ = mark_ == nullptr;
  marks_thread_stream_ = what == GateClass::kSubmits && !refused_ &&
                         (stream == CU_STREAM_PER_THREAD || (per_thread && stream == nullptr));
}

GatePass::~GatePass() {
  if (mark_ == nullptr) return;
  State& s = state();
  if (marks_thread_stream_) mark_thread_stream(s);
  s.swap.gate.leave(mark_);
}

}  // namespace gpurota::interposer

#include "interposer/gated_hooks.inc"
