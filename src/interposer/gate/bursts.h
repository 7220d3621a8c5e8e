// Bursts of work of an interactive lease: from the first submission until the program has learnt
// that all its submissions have ended.
//
// Nobody asks the driver for that. Each stream counts its submissions, and a call of the program
// that waits for a stream, an event or a context, or that finds it ended, moves the count of the
// ended ones. The page's word is odd during a burst (abi/wire_latency.h). A wrong count only means
// that work of other leases is held back too long (they bound that themselves) or not at all.
//
// Any thread; no locks. All-zero memory is a process without work.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

// How far a stream had come.
struct StreamMark {
  uint32_t stream;  // its index in Bursts
  uint32_t submitted;
};

class Bursts {
 public:
  static constexpr uint32_t kStreams = 128;
  static constexpr uint32_t kEvents = 1024;
  static constexpr int64_t kRefreshUs = 10'000;

  // Before a submission to this stream. `stream`: not 0, identifies the stream in this process.
  // True for every 16th submission: refresh() is due.
  bool submit(std::atomic<uint32_t>* word, uint64_t stream);
  // Grows the word if it has not grown for kRefreshUs, so that a long burst that still submits does
  // not look stuck.
  void refresh(std::atomic<uint32_t>* word, int64_t now_us);

  // Before a call that waits for the stream, and after the call has said that the work has ended.
  StreamMark mark(uint64_t stream) const;
  void ended(std::atomic<uint32_t>* word, const StreamMark& mark);
  // The same for all streams.
  struct AllMarks {
    uint32_t count;
    uint32_t submitted[kStreams];
  };
  void mark_all(AllMarks* out) const;
  void all_ended(std::atomic<uint32_t>* word, const AllMarks& marks);
  // The stream is destroyed, so no call will wait for it.
  void forget(std::atomic<uint32_t>* word, uint64_t stream);

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
  };
  struct Event {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> mark;  // the stream's index, and in the upper half its count
  };

  uint32_t find(uint64_t stream) const;
  uint32_t find_or_add(uint64_t stream);
  bool is_idle() const;
  void raise(uint32_t stream, uint32_t submitted);
  void end_if_idle(std::atomic<uint32_t>* word);

  std::atomic<uint32_t> used_;  // entries [0, used_) have been in use
  std::atomic<int64_t> refreshed_us_;
  std::atomic<uint64_t> bursts_;
  Stream streams_[kStreams];  // the last is shared by all streams that find no place
  Event events_[kEvents];
};

}  // namespace gpurota::interposer
