// How an exported driver function begins. Included by every api_*.cpp.
//
//   GPUROTA_SIM_API cuMemFree_v2(CUdeviceptr address) {
//     ContextCall call;
//     if (call.failed()) return call.error();
//     …call.driver(), *call.context()…
//   }
//
// A call holds the driver's lock until it is destroyed. GPUROTA_SIM_STREAM_API defines a function
// and its _ptsz (or _ptds) twin, for which a null stream is the calling thread's own.
//
// The rules of captures are looked up by the name of the exported function (capture.h). A call
// takes that name from the function in which the call is constructed. A call constructed in a
// helper is given the name, unless the functions that use the helper are allowed at any time.
#pragma once

#include "abi/cuda_abi.h"
#include "sim/cuda/driver.h"
#include "sim/cuda/park_pass.h"

#include <mutex>

#define GPUROTA_SIM_API extern "C" __attribute__((visibility("default"))) CUresult

#define GPUROTA_SIM_STREAM_API(name, suffix, parameters, arguments) \
  static CUresult name##_body parameters;                           \
  GPUROTA_SIM_API name parameters { return name##_body arguments; } \
  GPUROTA_SIM_API name##suffix parameters {                         \
    const ::gpurota::sim::PerThreadStream per_thread;               \
    return name##_body arguments;                                   \
  }                                                                 \
  static CUresult name##_body parameters

namespace gpurota::sim {

// Marks the calling thread as using per-thread default streams while this object lives: a null
// stream then means the thread's own stream.
class PerThreadStream {
 public:
  PerThreadStream();
  ~PerThreadStream();
  PerThreadStream(const PerThreadStream&) = delete;
  PerThreadStream& operator=(const PerThreadStream&) = delete;
  static bool is_on();
};

// A call that needs cuInit only. With a null `function` the constructor does not check whether a
// capture forbids the call: the caller checks that. `parked`: the name under which the rules of
// parking (park_pass.h) are looked up; null: the same as `function`.
class Call {
 public:
  explicit Call(const char* function = __builtin_FUNCTION(), const char* parked = nullptr);
  bool failed() const { return error_ != CUDA_SUCCESS; }
  CUresult error() const { return error_; }
  Driver& driver() const { return driver_; }
  Machine& machine() const { return *driver_.machine; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 protected:
  Driver& driver_;
  CUresult error_;
  ParkPass pass_;
  std::unique_lock<std::mutex> lock_;
};

// A call that needs a usable current context.
class ContextCall : public Call {
 public:
  explicit ContextCall(const char* function = __builtin_FUNCTION(), const char* parked = nullptr);
  Context* context() const { return context_; }

 private:
  Context* context_ = nullptr;
};

// Counts a call of a function or feature that is not simulated.
CUresult unsupported(const char* name);

}  // namespace gpurota::sim
