#include "interposer/driver/own_calls.h"

namespace gpurota::interposer {

RelaxedCapture::RelaxedCapture() {
  exchanged_ = GPUROTA_OWN(cuThreadExchangeStreamCaptureMode)(&mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
  if (exchanged_) GPUROTA_OWN(cuThreadExchangeStreamCaptureMode)(&mode_);
}

// A swap lease counts exactly the captures under way. In any other lease, a capture whose begin or
// end failed stays counted.
NothingCaptures::NothingCaptures(const DriverPart& part, const Lock&)
    : proven_(((part.roles.load() & kSwaps) != 0 ? part.streams.captures : part.captures).load() ==
              0) {}

namespace {

// Asks the driver only if something may capture: a capture is counted, or the program has driver
// functions without a hook, and one of these could have begun a capture.
CUresult ask(CUstream stream, bool per_thread, CUstreamCaptureStatus* status) {
  const DriverPart& part = driver_part();
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (part.captures.load() == 0 && part.unhooked.count.load() == 0) return CUDA_SUCCESS;
  return per_thread ? GPUROTA_OWN(cuStreamIsCapturing_ptsz)(stream, status)
                    : GPUROTA_OWN(cuStreamIsCapturing)(stream, status);
}

}  // namespace

bool is_capturing(CUstream stream, bool per_thread) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask(stream, per_thread, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Outside Outside::unless_captured(CUstream stream, bool per_thread) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = ask(stream, per_thread, &status);
  return Outside(status == CU_STREAM_CAPTURE_STATUS_NONE &&
                 result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

Outside Outside::unless_default(CUstream stream) {
  return Outside(reinterpret_cast<uintptr_t>(stream) > kLastDefaultStream);
}

}  // namespace gpurota::interposer
