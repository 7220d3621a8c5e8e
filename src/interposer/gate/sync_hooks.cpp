// Hooks of the calls by which a program learns that its work has ended: an interactive lease has no
// work any more (latency.h), and a process that is parked must not make them (driver/parking.h).
#include "interposer/driver/driver.h"
#include "interposer/gate/latency.h"

namespace gpurota::interposer {
namespace {

template <typename Call>
CUresult noting_end_of_event(CUevent event, Call call) {
  StreamMark mark{};
  if (!marks_bursts() || !mark_event(state(), event, &mark)) return call();
  const CUresult result = call();
  if (result == CUDA_SUCCESS) note_end(state(), mark);
  return result;
}

template <typename Call>
CUresult noting_event(CUevent event, CUstream stream, bool per_thread, Call call) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS && marks_bursts()) note_event(state(), event, stream, per_thread);
  return result;
}

template <typename Call>
CUresult noting_wait(CUevent event, CUstream stream, bool per_thread, Call call) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS && marks_bursts()) note_wait(state(), event, stream, per_thread);
  return result;
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuStreamSynchronize(CUstream stream) {
  GPUROTA_ENTER(cuStreamSynchronize, stream);
  return interposer::noting_end(
      stream, false, [=] { return interposer::ask_driver([=] { return real(stream); }); });
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  GPUROTA_ENTER(cuStreamSynchronize_ptsz, stream);
  return interposer::noting_end(
      stream, true, [=] { return interposer::ask_driver([=] { return real(stream); }); });
}

CUresult cuStreamQuery(CUstream stream) {
  GPUROTA_ENTER(cuStreamQuery, stream);
  return interposer::noting_end(
      stream, false, [=] { return interposer::ask_driver([=] { return real(stream); }); });
}

CUresult cuStreamQuery_ptsz(CUstream stream) {
  GPUROTA_ENTER(cuStreamQuery_ptsz, stream);
  return interposer::noting_end(
      stream, true, [=] { return interposer::ask_driver([=] { return real(stream); }); });
}

CUresult cuEventSynchronize(CUevent event) {
  GPUROTA_ENTER(cuEventSynchronize, event);
  return interposer::noting_end_of_event(
      event, [=] { return interposer::ask_driver([=] { return real(event); }); });
}

CUresult cuEventQuery(CUevent event) {
  GPUROTA_ENTER(cuEventQuery, event);
  return interposer::noting_end_of_event(
      event, [=] { return interposer::ask_driver([=] { return real(event); }); });
}

CUresult cuCtxSynchronize() {
  GPUROTA_ENTER(cuCtxSynchronize);
  return interposer::noting_end_of(interposer::Bursts::Which::kAll, nullptr,
                                   [=] { return interposer::ask_driver([=] { return real(); }); });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  GPUROTA_ENTER(cuCtxSynchronize_v2, context);
  return interposer::noting_end_of(interposer::Bursts::Which::kAll, context, [=] {
    return interposer::ask_driver([=] { return real(context); });
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  GPUROTA_ENTER(cuEventRecord, event, stream);
  return interposer::noting_event(event, stream, false, [=] { return real(event, stream); });
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  GPUROTA_ENTER(cuEventRecord_ptsz, event, stream);
  return interposer::noting_event(event, stream, true, [=] { return real(event, stream); });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  GPUROTA_ENTER(cuEventRecordWithFlags, event, stream, flags);
  return interposer::noting_event(event, stream, false, [=] { return real(event, stream, flags); });
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) {
  GPUROTA_ENTER(cuEventRecordWithFlags_ptsz, event, stream, flags);
  return interposer::noting_event(event, stream, true, [=] { return real(event, stream, flags); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  GPUROTA_ENTER(cuStreamWaitEvent, stream, event, flags);
  return interposer::noting_wait(event, stream, false, [=] { return real(stream, event, flags); });
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  GPUROTA_ENTER(cuStreamWaitEvent_ptsz, stream, event, flags);
  return interposer::noting_wait(event, stream, true, [=] { return real(stream, event, flags); });
}

// Needs the times of the events, so it waits while the process is parked.
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  GPUROTA_ENTER(cuEventElapsedTime, milliseconds, start, end);
  return interposer::ask_driver([=] { return real(milliseconds, start, end); }, false);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  GPUROTA_ENTER(cuEventElapsedTime_v2, milliseconds, start, end);
  return interposer::ask_driver([=] { return real(milliseconds, start, end); }, false);
}
