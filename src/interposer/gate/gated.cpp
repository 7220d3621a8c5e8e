#include "interposer/gate/gated.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gate_part.h"
#include "interposer/gate/streams.h"

namespace gpurota::interposer {

void GatePass::hold_back(Kind kind) {
  GatePart& part = gate_of(state());
  if ((roles() & (kHoldsBack | kTakesWindows)) == 0) return;
  // While the gate is shut, the submission waits there, and nothing more gets into flight.
  if (part.gate.state() != GateState::kOpen) return;
  part.held_back.fetch_add(1, std::memory_order_relaxed);
  wait_for_others(state(), stream_, per_thread_, kind == Kind::kOverlaps);
  part.held_back.fetch_sub(1, std::memory_order_relaxed);
}

void GatePass::enter_gate(GateClass what, Kind kind) {
  GatePart& part = gate_of(state());
  int standing = -1;
  const auto captures = [&] {  // called only if the call has to wait
    if (is_capturing(stream_, per_thread_)) return true;
    standing = submits_ ? place_of_stream(stream_, per_thread_).slot : -1;
    if (standing >= 0) part.standing[standing].fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  mark_ = part.gate.enter(what, captures, kind != Kind::kImpatient);
  if (standing >= 0) part.standing[standing].fetch_sub(1, std::memory_order_relaxed);
  refused_ = mark_ == nullptr;
}

// A swap lease's process holds back its work before the gate: inside, its turn could not be taken
// away.
GatePass::GatePass(GateClass what, CUstream stream, bool per_thread, Kind kind)
    : stream_(stream), per_thread_(per_thread), kind_(kind), submits_(what == GateClass::kSubmits) {
  const bool swaps = swapping();
  if (!swaps) {
    if (submits_) wait_for_others(state(), stream, per_thread, kind == Kind::kOverlaps);
  } else {
    if (submits_ && !is_inside_gate()) hold_back(kind);
    enter_gate(what, kind);
  }
  if (submits_ && !refused_) counted_ = before_submission(state(), stream, per_thread);
}

GatePass::Kind kind_of(const CUlaunchConfig* config) {
  const unsigned int count = config != nullptr && config->attrs != nullptr ? config->numAttrs : 0;
  for (unsigned int i = 0; i < count; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
        attribute.value.programmaticStreamSerializationAllowed != 0) {
      return GatePass::Kind::kOverlaps;
    }
  }
  return GatePass::Kind::kNormal;
}

GatePass::~GatePass() {
  State& s = state();
  // The end that a kEnds call notes covers the call itself, so nothing may be counted after it.
  if (counted_ != 0 && kind_ != Kind::kEnds) after_submission(s, counted_);
  if (mark_ == nullptr) return;
  const bool thread_stream = stream_ == CU_STREAM_PER_THREAD || (per_thread_ && stream_ == nullptr);
  // Another thread cannot query a thread's own default stream, so an event marks the submission.
  if (submits_ && thread_stream) mark_thread_stream(s);
  gate_of(s).gate.leave(mark_);
}

}  // namespace gpurota::interposer

#include "interposer/gated_hooks.inc"
