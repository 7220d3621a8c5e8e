// Bursts of work of an interactive lease: from the first submission until the program has learnt
// that all its submissions have ended.
//
// Nobody asks the driver for that. Each stream counts its submissions, and a call of the program
// that waits for a stream, an event or a context, or that finds it ended, moves the count of the
// ended ones. The page's word is odd during a burst (abi/wire_latency.h). A wrong count only means
// that work of other leases is held back too long (they bound that themselves) or not at all.
//
// Any thread. All-zero memory is a process without work.
#pragma once

#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

// How far a stream had come.
struct StreamMark {
  uint32_t stream;  // its index in Bursts
  uint32_t submitted;
};

// Facts of a stream that never change.
struct StreamTraits {
  uint64_t context;
  bool is_blocking;  // whether it waits for the legacy default stream
};

class Bursts {
 public:
  static constexpr uint32_t kStreams = 128;
  static constexpr uint32_t kEvents = 1024;
  static constexpr uint32_t kJoins = 64;
  static constexpr int64_t kRefreshUs = 10'000;
  // A stream that got nothing new for this long counts as ended, because no call may ever end it:
  // its context was destroyed, or the program does not wait for it.
  static constexpr int64_t kSilentUs = 50'000;

  // Before a submission to this stream, and again after it: a mark that is taken meanwhile must not
  // cover the submission. `stream`: not 0, identifies the stream in this process. `traits()` is
  // called once for each stream. The word grows at least every kRefreshUs, so that a long burst
  // that still submits does not look stuck. True: a burst has begun.
  template <typename Traits>
  bool submit(std::atomic<uint32_t>* word, uint64_t stream, int64_t now_us, Traits traits) {
    return count(word, find_or_add(stream, traits), now_us);
  }

  // The second of the two counts, for a caller that has made the first.
  bool submit_again(std::atomic<uint32_t>* word, uint64_t stream, int64_t now_us) {
    return count(word, find(stream), now_us);
  }

  // Before a call that waits for the stream, and after the call has said that the work has ended.
  StreamMark mark(uint64_t stream) const;
  void ended(std::atomic<uint32_t>* word, const StreamMark& mark, int64_t now_us);
  // The same for all streams of a context, or for those that are blocking. Streams that found no
  // place in the table count as streams of every context.
  struct AllMarks {
    uint32_t submitted[kStreams];
  };
  enum class Which { kAll, kBlocking };
  void mark_all(Which which, uint64_t context, AllMarks* out) const;
  void all_ended(std::atomic<uint32_t>* word, const AllMarks& marks, int64_t now_us);
  // Ends the burst if all streams have ended by now, or count as ended (kSilentUs).
  void check(std::atomic<uint32_t>* word, int64_t now_us) { end_if_idle(word, now_us); }
  // The stream is destroyed, so no call will wait for it.
  void forget(std::atomic<uint32_t>* word, uint64_t stream, int64_t now_us);
  // The context was destroyed, and its streams with it.
  void forget_context(std::atomic<uint32_t>* word, uint64_t context, int64_t now_us);
  // The stream waits for an event. So when work of `stream` that comes later has ended, the work
  // before the event has ended, too. `traits` as for submit().
  template <typename Traits>
  void join(uint64_t stream, const StreamMark& event, Traits traits) {
    if (!has_ended(event)) add_join(find_or_add(stream, traits), event);
  }

  // An event was recorded in this stream. `event` is not 0.
  void record(uint64_t event, uint64_t stream);
  // Where the stream of the event was when the event was last recorded. False: not known.
  bool find_event(uint64_t event, StreamMark* out) const;

  uint64_t bursts() const { return bursts_.load(std::memory_order_relaxed); }

 private:
  struct Stream {
    std::atomic<uint64_t> key;  // 0: free
    std::atomic<uint32_t> submitted;
    std::atomic<uint32_t> ended;
    std::atomic<int64_t> last_us;  // of its last submission
    std::atomic<uint64_t> context;
    std::atomic<bool> blocking;
  };
  struct Event {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> mark;  // the stream's index, and in the upper half its count
  };
  // `waiting.stream` waits for `before`. The wait counts as submission `waiting.submitted` of that
  // stream, which ends only when `before` has ended.
  struct Join {
    StreamMark waiting;
    StreamMark before;
  };

  uint32_t find(uint64_t stream) const;
  uint32_t add(uint64_t stream, const StreamTraits& traits);
  template <typename Traits>
  uint32_t find_or_add(uint64_t stream, Traits traits) {
    const uint32_t found = find(stream);
    return found != kStreams - 1 ? found : add(stream, traits());
  }
  void remove(uint32_t index);
  void add_join(uint32_t waiting, const StreamMark& event);
  bool count(std::atomic<uint32_t>* word, uint32_t index, int64_t now_us);
  void refresh(std::atomic<uint32_t>* word, int64_t now_us);
  bool has_ended(const StreamMark& mark) const;
  bool is_idle(int64_t now_us) const;
  void raise(const StreamMark& mark);
  void raise_joined(const StreamMark& mark);
  void end_if_idle(std::atomic<uint32_t>* word, int64_t now_us);

  std::atomic<uint32_t> used_;  // entries [0, used_) have been in use
  std::atomic<int64_t> refreshed_us_;
  std::atomic<uint64_t> bursts_;
  Stream streams_[kStreams];  // the last is shared by all streams that find no place
  Event events_[kEvents];
  Mutex mutex_;                   // guards adding to streams_, and joins_
  std::atomic<uint32_t> joined_;  // joins_ in use
  Join joins_[kJoins];
};

}  // namespace gpurota::interposer
