// Takes a driver call through the latency classes and compute shares (latency.h), and through the
// gate of a swap lease (gate.h). A process without any of these roles pays two loads.
//
// A call inside the gate counts as being submitted, so a call must wait for memory before it enters
// the gate, never inside.
#pragma once

#include "interposer/driver/driver.h"
#include "interposer/driver/driver_part.h"
#include "interposer/gate/gate.h"
#include "interposer/gate/latency.h"

namespace gpurota::interposer {

// The result of a call that must not be made, because no daemon is there to let it pass.
inline constexpr CUresult kNotLet = CUDA_ERROR_DEVICE_UNAVAILABLE;

class GatePass {
 public:
  enum class Kind : uint8_t {
    kNormal,     // waits if it has to
    kImpatient,  // is refused if it has to wait
    kOverlaps,   // as normal; may begin on the GPU while the previous submission still runs
    kEnds,       // as normal; returns when the work of its stream has ended
  };
  GatePass(GateClass what, CUstream stream, bool per_thread, Kind kind = Kind::kNormal);
  ~GatePass();
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

  bool refused() const { return refused_; }

 private:
  void hold_back(Kind kind);
  void enter_gate(GateClass what, Kind kind);

  GateMark* mark_ = nullptr;
  uint64_t counted_ = 0;  // as before_submission() returned
  CUstream stream_;
  bool per_thread_;
  Kind kind_;
  bool submits_;
  bool refused_ = false;
};

// kOverlaps or kNormal, by the attributes of a launch. `config` may be nullptr.
GatePass::Kind kind_of(const CUlaunchConfig* config);

// Makes `call()` inside the gate.
template <typename Call>
CUresult gated(GateClass what, CUstream stream, bool per_thread, Call call) {
  if (roles() == 0) return call();
  const GatePass pass(what, stream, per_thread);
  return pass.refused() ? kNotLet : call();
}

// The same for a call that belongs to `flights` (may be nullptr): nobody waits for a flight while
// its call waits at the gate.
template <typename Call, typename Flights>
CUresult gated(GateClass what, CUstream stream, bool per_thread, Call call, Flights* flights) {
  if (roles() == 0) return call();
  if (flights != nullptr) flights->wait_begins();
  const GatePass pass(what, stream, per_thread);
  if (flights != nullptr) flights->wait_ends();
  return pass.refused() ? kNotLet : call();
}

}  // namespace gpurota::interposer

// The body of a hook that waits at the gate and then makes `call`.
#define GPUROTA_GATED_CALL(symbol, what, stream, per_thread, kind, arguments, call)          \
  const auto real = GPUROTA_REAL(symbol);                                                    \
  if (real == nullptr) return ::gpurota::interposer::missing_function(#symbol);              \
  if (::gpurota::interposer::roles() == 0) return real arguments;                            \
  const ::gpurota::interposer::GatePass pass(::gpurota::interposer::GateClass::what, stream, \
                                             per_thread, kind);                              \
  return pass.refused() ? ::gpurota::interposer::kNotLet : call;

// The body of a hook that only waits at the gate. `arguments` in parentheses.
#define GPUROTA_GATED(symbol, what, stream, per_thread, arguments) \
  GPUROTA_GATED_CALL(symbol, what, stream, per_thread,             \
                     ::gpurota::interposer::GatePass::Kind::kNormal, arguments, real arguments)

// The same for a launch with attributes (may be nullptr).
#define GPUROTA_GATED_LAUNCH(symbol, config, per_thread, arguments)                       \
  GPUROTA_GATED_CALL(symbol, kSubmits, (config) != nullptr ? (config)->hStream : nullptr, \
                     per_thread, ::gpurota::interposer::kind_of(config), arguments,       \
                     real arguments)

// The same for a function that returns when the work of its stream has ended.
#define GPUROTA_GATED_TO_THE_END(symbol, what, stream, per_thread, arguments)                    \
  GPUROTA_GATED_CALL(                                                                            \
      symbol, what, stream, per_thread, ::gpurota::interposer::GatePass::Kind::kEnds, arguments, \
      ::gpurota::interposer::noting_end(stream, per_thread, [&] { return real arguments; }))
