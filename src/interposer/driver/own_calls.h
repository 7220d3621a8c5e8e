// Driver calls that libgpurota adds to those of the program.
//
// While a stream captures, the driver refuses many calls, and such a call can end the capture
// (docs/design/captures.md): a call of ours would destroy what the program records. The effect of
// each function on a capture was measured (abi/captures.tsv), and the build makes a rule for each
// function. GPUROTA_OWN(symbol) compiles only with the proof that its rule asks for, and never for
// a function that was not measured. If the driver lacks the function, GPUROTA_OWN returns
// CUDA_ERROR_NOT_SUPPORTED. GPUROTA_REAL is for hooks, which pass on the program's own call.
//
// Any thread. A proof by a held lock, or by the thread's mode, costs nothing at the call.
#pragma once

#include "interposer/driver/driver.h"
#include "interposer/driver/driver_part.h"

#include <cstdint>

namespace gpurota::interposer {

// Handles up to this value name a default stream of the current context: nullptr, CU_STREAM_LEGACY
// and CU_STREAM_PER_THREAD.
inline constexpr uintptr_t kLastDefaultStream = 2;
// Whether it is the default stream that waits for all blocking streams. `per_thread`: nullptr names
// the calling thread's default stream.
inline bool is_legacy_stream(CUstream stream, bool per_thread) {
  return stream == CU_STREAM_LEGACY || (stream == nullptr && !per_thread);
}

// While an object lives, the driver treats calls of the calling thread as harmless to captures
// under way, except queries about something that is being captured. Nests. Costs 23 ns (H100,
// driver 580).
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

// Proof that nothing captures, and that nothing begins to capture while the lock is held. False:
// something captures, or may.
class NothingCaptures {
 public:
  // `streams` holds KnownStreams::mutex, which a thread that begins a capture takes too.
  NothingCaptures(const DriverPart& part, const Lock& streams);
  explicit operator bool() const { return proven_; }

 private:
  bool proven_;
};

// Proof that the target of a call belongs to no capture. False: the target belongs to one, and the
// call is not made.
class Outside {
 public:
  // For a stream of ours, and for an event recorded only in our streams or in streams that were
  // outside of captures.
  static Outside ours() { return Outside(true); }
  // Asks the driver; asking never harms a capture. Also detects a stream that only joined a
  // capture. For the legacy stream, also detects a capture of another stream that waits for the
  // legacy stream.
  static Outside unless_captured(CUstream stream, bool per_thread);
  // For a query that does no harm while its stream captures, unless its stream is a default stream.
  static Outside unless_default(CUstream stream);
  Outside(const NothingCaptures& nothing)
      : proven_(nothing) {}  // NOLINT: one proof is as good as the other
  explicit operator bool() const { return proven_; }

 private:
  explicit Outside(bool proven) : proven_(proven) {}
  bool proven_;
};

// Whether work given to the stream is recorded, or would be if its capture were not invalidated.
bool is_capturing(CUstream stream, bool per_thread);

enum class CaptureRule : uint8_t {
  kAnytime,         // harms no capture
  kRelaxed,         // harms no capture while the thread's mode is relaxed
  kOutside,         // as kRelaxed, if the call's target also belongs to no capture
  kOutsideAnytime,  // in any mode, harms no capture if the call's target belongs to no capture
  kNever,           // ends every capture
};

// Declared only for functions that were measured.
template <Fn fn>
struct RuleOf;
#define GPUROTA_CAPTURE_RULE(symbol, rule)                  \
  template <>                                               \
  struct RuleOf<kFn_##symbol> {                             \
    static constexpr CaptureRule kRule = CaptureRule::rule; \
  };
#include "interposer/capture_rules.h"  // generated
#undef GPUROTA_CAPTURE_RULE

// Whether a parked process must not call the function (parking.h), and may answer it. The library
// itself never calls cuEventElapsedTime, which has no answer.
constexpr bool is_question(Fn fn) {
  return fn == kFn_cuCtxSynchronize || fn == kFn_cuCtxSynchronize_v2 || fn == kFn_cuEventQuery ||
         fn == kFn_cuEventSynchronize || fn == kFn_cuStreamQuery || fn == kFn_cuStreamQuery_ptsz ||
         fn == kFn_cuStreamSynchronize || fn == kFn_cuStreamSynchronize_ptsz;
}

template <Fn fn, CaptureRule rule, typename F>
class OwnCall;

template <Fn fn, CaptureRule rule, typename... A>
class OwnCall<fn, rule, CUresult(A...)> {
 public:
  CUresult operator()(A... arguments) const requires(rule == CaptureRule::kAnytime) {
    return make(arguments...);
  }
  CUresult operator()(const RelaxedCapture&, A... arguments) const
      requires(rule == CaptureRule::kRelaxed) {
    return make(arguments...);
  }
  CUresult operator()(const RelaxedCapture&, const Outside& outside, A... arguments) const
      requires(rule == CaptureRule::kOutside) {
    return outside ? make(arguments...) : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult operator()(const Outside& outside, A... arguments) const
      requires(rule == CaptureRule::kOutsideAnytime) {
    return outside ? make(arguments...) : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult operator()(const NothingCaptures& nothing, A... arguments) const
      requires(rule == CaptureRule::kNever) {
    return nothing ? make(arguments...) : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }

 private:
  static CUresult make(A... arguments) {
    const auto real = real_function<CUresult(A...)>(fn);
    if (real == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if constexpr (is_question(fn)) {
      return ask_driver([&] { return real(arguments...); });
    } else {
      return real(arguments...);
    }
  }
};

}  // namespace gpurota::interposer

// libgpurota's own call of the driver's `symbol`. The proofs that the function's rule asks for come
// first, then the function's own arguments.
#define GPUROTA_OWN(symbol)                                                      \
  ::gpurota::interposer::OwnCall<                                                \
      ::gpurota::interposer::kFn_##symbol,                                       \
      ::gpurota::interposer::RuleOf<::gpurota::interposer::kFn_##symbol>::kRule, \
      decltype(::symbol)> {}
// Whether the driver has `symbol`. Ask before a pair of calls of which the second must not fail.
#define GPUROTA_HAS(symbol) (GPUROTA_REAL(symbol) != nullptr)
