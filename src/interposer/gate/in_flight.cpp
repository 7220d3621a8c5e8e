#include "interposer/gate/in_flight.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/streams.h"

namespace gpurota::interposer {
namespace {

constexpr int64_t kPollUs = 20;  // then the thread sleeps between two queries
constexpr timespec kNap{0, 20'000};

void wait_for(CUevent event) {
  ErrnoGuard guard;
  const int64_t begun = now_us();
  while (!is_over(event)) {
    const int64_t waited = now_us() - begun;
    if (waited >= InFlight::kLongestWaitUs) return;
    if (waited >= kPollUs) ::syscall(SYS_nanosleep, &kNap, nullptr);
  }
}

}  // namespace

InFlight::Stream* InFlight::find(uint64_t key) {
  Stream* const found = streams_.find(key);
  return found != nullptr || streams_.size() >= kStreams ? found : streams_.put(key);
}

// Keeps a new event. Both events of a stream must be of one context, because they are forgotten
// with it. False: the event is not needed.
bool InFlight::keep(uint64_t key, uint32_t which, CUevent event, CUcontext context) {
  const Lock lock(mutex_);
  Stream* const entry = find(key);
  if (entry == nullptr || entry->event[which] != nullptr) return false;
  if (entry->event[1 - which] != nullptr && entry->context != context) return false;
  entry->context = context;
  entry->event[which] = event;
  return true;
}

// The driver is called without the lock: cuEventRecord waits while the stream's queue is full.
void InFlight::submitted(uint64_t key, CUstream stream, bool per_thread, int64_t until_us) {
  CUevent event = nullptr, before = nullptr;
  uint32_t which = 0;
  {
    const Lock lock(mutex_);
    Stream* const entry = find(key);
    if (entry == nullptr || ++entry->submitted % kEach != 0) return;
    which = entry->submitted / kEach % 2;
    event = entry->event[which];
    before = entry->event[1 - which];
  }
  if (now_us() > until_us) return;
  const Outside outside = Outside::unless_captured(stream, per_thread);
  if (!outside) return;
  if (event == nullptr) {
    if (GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
    if (!keep(key, which, event, current_context())) {
      GPUROTA_OWN(cuEventDestroy_v2)(event);
      return;
    }
  }
  const CUstream target = per_thread && stream == nullptr ? CU_STREAM_PER_THREAD : stream;
  if (GPUROTA_OWN(cuEventRecord)(outside, event, target) != CUDA_SUCCESS) return;
  if (before != nullptr) wait_for(before);
}

void InFlight::forget_stream(uint64_t key) {
  Stream gone{};
  {
    const Lock lock(mutex_);
    streams_.take(key, &gone);
  }
  for (CUevent event : gone.event) {
    if (event != nullptr) GPUROTA_OWN(cuEventDestroy_v2)(event);
  }
}

void InFlight::forget_context(CUcontext context) {
  const Lock lock(mutex_);
  streams_.remove_if([=](const Stream& stream) { return stream.context == context; },
                     [](uint64_t, const Stream&) {});
}

}  // namespace gpurota::interposer
