// Calls of the driver that libgpurota makes on its own account, beside those of the program.
//
// The driver refuses many calls while a stream captures, and the capture is dead then
// (docs/design/captures.md): a question of ours would end what the program records. The effect of
// each function on a capture was measured (abi/captures.tsv); the build makes a rule of it for
// each, and GPUROTA_OWN(symbol) cannot be called without the proof that its rule asks for, or at
// all where nothing was measured. A function that the driver lacks answers
// CUDA_ERROR_NOT_SUPPORTED. GPUROTA_REAL is for hooks, which pass on the program's own call.
//
// Any thread. Cheap: what is proven by a lock that is held, or by the thread's mode, costs nothing
// at the call.
#pragma once

#include "interposer/driver/driver.h"
#include "interposer/driver/driver_part.h"

#include <cstdint>

namespace gpurota::interposer {

// Up to here a handle names a default stream: nullptr, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD
// are the current context's.
inline constexpr uintptr_t kLastDefaultStream = 2;

// While it lives, the driver takes the calling thread's calls as harmless for captures under way,
// but for those that ask about what is captured. Nests. 23 ns (H100, driver 580).
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

// Nothing captures, and nothing begins to while the lock is held. False: something does, or may.
class NothingCaptures {
 public:
  // `streams` is held on KnownStreams::mutex, which who begins a capture takes.
  NothingCaptures(const DriverPart& part, const Lock& streams);
  explicit operator bool() const { return proven_; }

 private:
  bool proven_;
};

// Proof that the target of a call belongs to no capture. False: it does, and the call is not made.
class Outside {
 public:
  // A stream of ours, and an event that is recorded in those alone or in streams that were outside.
  static Outside ours() { return Outside(true); }
  // Asks the driver, which never harms: true also of a stream that only joined a capture, and of
  // the legacy stream where another stream that waits for it captures.
  static Outside unless_captured(CUstream stream, bool per_thread);
  // For a question that a stream which captures answers like any other, but not a default stream.
  static Outside unless_default(CUstream stream);
  Outside(const NothingCaptures& nothing)
      : proven_(nothing) {}  // NOLINT: one proof is as good as the other
  explicit operator bool() const { return proven_; }

 private:
  explicit Outside(bool proven) : proven_(proven) {}
  bool proven_;
};

// Whether what is given to the stream is recorded, or would be if its capture were not dead.
bool is_capturing(CUstream stream, bool per_thread);

enum class CaptureRule : uint8_t {
  kAnytime,         // harms no capture
  kRelaxed,         // nor this, while the thread's mode is relaxed
  kOutside,         // nor this, if besides what it is aimed at belongs to no capture
  kOutsideAnytime,  // it must belong to none, the thread's mode does not matter
  kNever,           // ends every capture
};

// Declared for what was measured only.
template <Fn fn>
struct RuleOf;
#define GPUROTA_CAPTURE_RULE(symbol, rule)                  \
  template <>                                               \
  struct RuleOf<kFn_##symbol> {                             \
    static constexpr CaptureRule kRule = CaptureRule::rule; \
  };
#include "interposer/capture_rules.h"  // generated
#undef GPUROTA_CAPTURE_RULE

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
    return real != nullptr ? real(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
  }
};

}  // namespace gpurota::interposer

// libgpurota's own call of the driver's `symbol`: its proof first, then its arguments.
#define GPUROTA_OWN(symbol)                                                      \
  ::gpurota::interposer::OwnCall<                                                \
      ::gpurota::interposer::kFn_##symbol,                                       \
      ::gpurota::interposer::RuleOf<::gpurota::interposer::kFn_##symbol>::kRule, \
      decltype(::symbol)> {}
// Whether the driver has it: to be asked before a pair of calls of which the second must not fail.
#define GPUROTA_HAS(symbol) (GPUROTA_REAL(symbol) != nullptr)
