#include "interposer/gate/in_flight.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/streams.h"

namespace gpurota::interposer {
namespace {

constexpr int64_t kPollUs = 20;  // then the thread sleeps between two queries
constexpr timespec kNap{0, 20'000};

GroupLength::Wait wait_for_end(CUevent event) {
  if (is_over(event)) return GroupLength::Wait::kOver;
  const int64_t begun = now_us();
  for (;;) {
    const int64_t waited = now_us() - begun;
    if (waited >= InFlight::kLongestWaitUs) return GroupLength::Wait::kTooLong;
    if (waited >= kPollUs) ::syscall(SYS_nanosleep, &kNap, nullptr);
    if (is_over(event)) return GroupLength::Wait::kEnded;
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

void InFlight::wait_for(uint64_t key, CUevent event, uint32_t group) {
  ErrnoGuard guard;
  const GroupLength::Wait found = wait_for_end(event);
  const Lock lock(mutex_);
  Stream* const entry = streams_.find(key);
  if (entry != nullptr) entry->length.waited(group, found, now_us());
}

// The driver is called without the lock: cuEventRecord waits while the stream's queue is full.
void InFlight::submitting(uint64_t key, CUstream stream, bool per_thread, bool overlaps,
                          uint32_t times, int64_t until_us) {
  Stream found{};
  {
    const Lock lock(mutex_);
    Stream* const entry = find(key);
    if (entry == nullptr) return;
    const uint32_t most = entry->length.most(times);
    // Between short submissions that overlap, an event is seldom worth its delay.
    const bool rarely = overlaps && most == GroupLength::kMost * times;
    if (entry->submitted < (rarely ? most * kRarely : most)) {
      ++entry->submitted;
      return;
    }
    found = *entry;
    entry->group[entry->next] = entry->submitted;
    entry->submitted = 1;
    entry->next = 1 - entry->next;
  }
  if (now_us() > until_us) return;
  const Outside outside = Outside::unless_captured(stream, per_thread);
  if (!outside) return;
  CUevent event = found.event[found.next];
  if (event == nullptr) {
    if (GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
    if (!keep(key, found.next, event, current_context())) {
      GPUROTA_OWN(cuEventDestroy_v2)(event);
      return;
    }
  }
  if (GPUROTA_OWN(cuEventRecord)(outside, event, meant_stream(stream, per_thread)) != CUDA_SUCCESS)
    return;
  const uint32_t before = 1 - found.next;
  if (found.event[before] != nullptr) wait_for(key, found.event[before], found.group[before]);
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
