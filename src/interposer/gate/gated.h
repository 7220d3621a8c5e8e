// A driver call's way through the gate of a swap lease (gate.h). A process that is no swap tenant
// pays two loads.
//
// A call inside the gate counts as being submitted. So no call waits for memory in here: the wait
// for memory comes first.
#pragma once

#include "interposer/driver/driver.h"
#include "interposer/driver/driver_part.h"
#include "interposer/gate/gate.h"

namespace gpurota::interposer {

// The result of a call that may not be made, as the daemon that would let it pass is gone for good.
inline constexpr CUresult kNotLet = CUDA_ERROR_DEVICE_UNAVAILABLE;

class GatePass {
 public:
  // Refused also where it would have to wait, unless it `waits`.
  GatePass(GateClass what, CUstream stream, bool per_thread, bool waits = true);
  ~GatePass();
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

  bool refused() const { return refused_; }

 private:
  GateMark* mark_ = nullptr;
  bool refused_ = false;
  bool marks_thread_stream_ = false;
};

// `call()` inside the gate.
template <typename Call>
CUresult gated(GateClass what, CUstream stream, bool per_thread, Call call) {
  if (!swapping()) return call();
  const GatePass pass(what, stream, per_thread);
  return pass.refused() ? kNotLet : call();
}

// The same for a call that `flights` (may be nullptr) is of: nobody waits for a flight that stands
// at the gate.
template <typename Call, typename Flights>
CUresult gated(GateClass what, CUstream stream, bool per_thread, Call call, Flights* flights) {
  if (!swapping()) return call();
  if (flights != nullptr) flights->wait_begins();
  const GatePass pass(what, stream, per_thread);
  if (flights != nullptr) flights->wait_ends();
  return pass.refused() ? kNotLet : call();
}

}  // namespace gpurota::interposer

// The body of a hook that only waits. `arguments` in parentheses.
#define GPUROTA_GATED(symbol, what, stream, per_thread, arguments)                           \
  const auto real = GPUROTA_REAL(symbol);                                                    \
  if (real == nullptr) return ::gpurota::interposer::missing_function(#symbol);              \
  if (!::gpurota::interposer::swapping()) return real arguments;                             \
  const ::gpurota::interposer::GatePass pass(::gpurota::interposer::GateClass::what, stream, \
                                             per_thread);                                    \
  return pass.refused() ? ::gpurota::interposer::kNotLet : real arguments;
