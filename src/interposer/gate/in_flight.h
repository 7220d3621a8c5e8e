// Bounds how much work that has not ended a process has given to each stream, while an interactive
// lease beside it is active. Work that is in flight cannot be taken back, so the interactive lease
// waits for it.
//
// Of every eight submissions to a stream, the last is followed by an event, and the thread waits
// for the event of the eight before: 8 to 16 submissions are in flight. The wait is short if
// nothing ends: the work in flight may itself wait for something that this thread is about to do.
// Nothing is added to a stream that captures.
//
// Any thread. All-zero memory is a process that was never bounded.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

#include <cstdint>

namespace gpurota::interposer {

class InFlight {
 public:
  static constexpr uint32_t kEach = 8;
  static constexpr size_t kStreams = 128;  // the most that are bounded
  static constexpr int64_t kLongestWaitUs = 10'000;

  // After a submission. The stream's context is current. `key`: not 0, identifies the stream in
  // this process. May wait, but not after `until_us` (now_us()).
  void submitted(uint64_t key, CUstream stream, bool per_thread, int64_t until_us);
  // The stream is destroyed.
  void forget_stream(uint64_t key);
  // The context was destroyed, and its events with it.
  void forget_context(CUcontext context);

 private:
  struct Stream {
    CUcontext context;
    uint32_t submitted;
    CUevent event[2];  // nullptr: not made yet
  };

  Stream* find(uint64_t key);  // nullptr: there is no place for it
  bool keep(uint64_t key, uint32_t which, CUevent event, CUcontext context);

  Mutex mutex_;
  VaMap<Stream> streams_;  // by key
};

}  // namespace gpurota::interposer
