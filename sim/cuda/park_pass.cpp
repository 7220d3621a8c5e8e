#include "sim/cuda/park_pass.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <string_view>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::sim {
namespace {

// These functions do not take the driver's lock: a process that calls one while it is locked dies.
// `elapsed` is the body of both versions of cuEventElapsedTime.
constexpr std::string_view kDies[] = {"cuCtxSynchronize",   "cuCtxSynchronize_v2", "elapsed",
                                      "cuEventQuery",       "cuEventSynchronize",  "cuStreamQuery",
                                      "cuStreamSynchronize"};
// A part of the functions that answer meanwhile. All others wait.
constexpr std::string_view kAnswers[] = {"cuCtxFromGreenCtx",
                                         "cuCtxGetApiVersion",
                                         "cuCtxGetCurrent",
                                         "cuCtxGetDevice",
                                         "cuCtxGetId",
                                         "cuCtxGetStreamPriorityRange",
                                         "cuCtxPopCurrent_v2",
                                         "cuCtxPushCurrent_v2",
                                         "cuCtxSetCurrent",
                                         "cuDeviceCanAccessPeer",
                                         "cuDeviceGet",
                                         "cuDeviceGetAttribute",
                                         "cuDeviceGetCount",
                                         "cuDeviceGetName",
                                         "cuDeviceGetUuid",
                                         "cuDeviceGetUuid_v2",
                                         "cuDevicePrimaryCtxGetState",
                                         "cuDeviceTotalMem_v2",
                                         "cuFuncGetAttribute",
                                         "cuFuncGetModule",
                                         "cuMemAddressFree",
                                         "cuMemAddressReserve",
                                         "cuMemGetAddressRange_v2",
                                         "cuMemGetAllocationGranularity",
                                         "cuMemGetInfo_v2",
                                         "cuMemHostGetDevicePointer_v2",
                                         "cuMemHostGetFlags",
                                         "cuMemPoolGetAccess",
                                         "cuMemPoolGetAttribute",
                                         "cuMemPoolSetAttribute",
                                         "cuPointerGetAttribute",
                                         "cuPointerGetAttributes",
                                         "cuStreamGetCaptureInfo_v2",
                                         "cuStreamGetCtx",
                                         "cuStreamGetFlags",
                                         "cuStreamGetId",
                                         "cuStreamGetPriority",
                                         "cuStreamIsCapturing",
                                         "cuThreadExchangeStreamCaptureMode"};

std::string_view name_of(std::string_view function) {
  constexpr std::string_view kBody = "_body";  // suffix added by GPUROTA_SIM_STREAM_API
  if (function.size() > kBody.size() && function.substr(function.size() - kBody.size()) == kBody) {
    function.remove_suffix(kBody.size());
  }
  return function;
}

bool dies(const char* function) {
  return std::find(std::begin(kDies), std::end(kDies), name_of(function)) != std::end(kDies);
}

bool answers(const char* function) {
  return std::binary_search(std::begin(kAnswers), std::end(kAnswers), name_of(function));
}

}  // namespace

void wake_parked(ProcessSlot& slot) {
  ::syscall(SYS_futex, &slot.park, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

ParkPass::ParkPass(ProcessSlot* slot, const char* function) : slot_(slot), function_(function) {
  if (slot_ == nullptr || function_ == nullptr) return;
  for (;;) {
    slot_->in_calls.fetch_add(1);
    const std::uint32_t park = slot_->park.load();
    counted_ = park == kParkRunning;
    if (counted_) return;
    slot_->in_calls.fetch_sub(1);
    if (dies(function_)) (void)::raise(SIGSEGV);
    if (answers(function_)) return;
    ::syscall(SYS_futex, &slot_->park, FUTEX_WAIT, park, nullptr, nullptr, 0);
  }
}

ParkPass::~ParkPass() {
  if (!counted_) return;
  // A call that waits for work kills the process even if the call began before the process was
  // locked.
  if (slot_->park.load() != kParkRunning && dies(function_)) (void)::raise(SIGSEGV);
  slot_->in_calls.fetch_sub(1);
}

}  // namespace gpurota::sim
