// Limits how much unfinished work a process has in each stream, while an interactive lease beside
// it is active. Work that is in flight cannot be taken back, so the interactive lease waits for it.
//
// An event is put into each stream after every few submissions, and the thread waits for the
// previous event. So two such groups of submissions are in flight (group_length.h). If the event
// does not come, the thread gives up soon (kLongestWaitUs): the work in flight may itself wait for
// something that this thread is about to do. Nothing is added to a stream that captures.
//
// Any thread. All-zero memory is a process that was never bounded.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/gate/group_length.h"
#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

#include <cstdint>

namespace gpurota::interposer {

class InFlight {
 public:
  static constexpr size_t kStreams = 128;  // the most that are bounded
  static constexpr int64_t kLongestWaitUs = GroupLength::kTooLongUs;
  static constexpr uint32_t kRarely = 4;
  // In a window of compute time, groups take this many times as long: nobody waits for their end
  // until the window ends, and short groups slow down programs of small kernels.
  static constexpr uint32_t kInWindows = 4;

  // Before a submission. The stream's context is current. `key`: not 0, identifies the stream in
  // this process. `overlaps`: an event would keep this submission from beginning while the previous
  // one still runs, so events come only after kRarely times as many, unless submissions are long.
  // `times`: 1 or kInWindows. May wait, but not after `until_us` (now_us()).
  void submitting(uint64_t key, CUstream stream, bool per_thread, bool overlaps, uint32_t times,
                  int64_t until_us);
  // The stream is destroyed.
  void forget_stream(uint64_t key);
  // The context was destroyed, and its events with it.
  void forget_context(CUcontext context);

 private:
  struct Stream {
    CUcontext context;
    GroupLength length;
    uint32_t submitted;  // since the last event
    uint32_t next;       // of `event`: which is recorded next
    CUevent event[2];    // nullptr: not made yet
    uint32_t group[2];   // how many submissions came before each event
  };

  Stream* find(uint64_t key);  // nullptr: there is no place for it
  bool keep(uint64_t key, uint32_t which, CUevent event, CUcontext context);
  void wait_for(uint64_t key, CUevent event, uint32_t group);

  Mutex mutex_;
  VaMap<Stream> streams_;  // by key
};

}  // namespace gpurota::interposer
