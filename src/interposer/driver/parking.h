// The driver's functions that a parked process must not call (docs/design/park.md): those that wait
// for work, or ask whether it has ended. As these functions do not take the driver's lock, they
// would crash the process while another one locks, parks or restores it.
//
// Every call of these functions is a Question. While the process runs, a question costs two stores
// and a load. Before the process is locked, the helper thread closes: new questions wait, and
// nobody_asks() says whether one is still in the driver. While the process is parked, all its work
// has ended, so most questions are answered without the driver. All other functions of the driver
// may be called at any time.
//
// Any thread. All-zero memory is a process that runs, which is what a forked child finds.
#pragma once

#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

// kRests: the worker rests, and questions pass: a thread that waits in a question may hold a lock
// for which the worker waits, so the worker rests first. kCloses: questions wait. kParked: the
// process is locked, and all its work has ended.
enum class ParkState : uint32_t { kRuns = 0, kRests = 1, kCloses = 2, kParked = 3 };

// Obstacles to parking: bits of Parking::obstacles, which stay once they are set.
inline constexpr uint32_t kParkHostMemory = 1;  // made by cuMemCreate on the host
inline constexpr uint32_t kParkImports = 2;     // memory of another process

struct alignas(64) ParkMark {
  std::atomic<int32_t> tid;  // 0: not in use
  std::atomic<uint32_t> depth;
};

// The mark of this thread; nullptr until its first question.
extern __thread ParkMark* t_park_mark __attribute__((tls_model("initial-exec")));

class Parking {
 public:
  static constexpr uint32_t kMarks = 1024;

  // enter() and leave() go around a question. enter() returns nullptr if the question is answered,
  // and the driver must not be asked. While `captures` is not 0 (something captures), only the
  // driver knows the answer, so a question that would be answered waits instead.
  ParkMark* enter(bool may_answer, const std::atomic<uint32_t>& captures) {
    ParkMark* mark = t_park_mark;
    if (mark == nullptr || mark->tid.load(std::memory_order_relaxed) == 0) mark = register_thread();
    const uint32_t depth = mark->depth.load(std::memory_order_relaxed);
    if (mark == &overflow_) {
      mark->depth.fetch_add(1);
    } else {
      mark->depth.store(depth + 1, std::memory_order_relaxed);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a full fence through membarrier
    if (state_.load(std::memory_order_relaxed) != 0) {
      return enter_slow(mark, depth, may_answer, captures);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return mark;
  }
  void leave(ParkMark* mark) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (mark == &overflow_) {
      mark->depth.fetch_sub(1);
    } else {
      mark->depth.store(mark->depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }
  }

  // For the helper thread.
  void set(ParkState state);
  ParkState state() const { return static_cast<ParkState>(state_.load()); }
  // Whether no thread is in a question. A thread that died in one does not count.
  bool nobody_asks();

  // For the worker of a swap lease, before a round in which it calls the driver: all its calls
  // together count as one question. nullptr: it must rest, and call nothing.
  ParkMark* begin_round();
  bool worker_rests() const {
    const ParkMark* const mark = worker_.load();
    return mark == nullptr || mark->depth.load() == 0;
  }

  std::atomic<uint32_t> obstacles;

 private:
  ParkMark* enter_slow(ParkMark* mark, uint32_t depth, bool may_answer,
                       const std::atomic<uint32_t>& captures);
  ParkMark* register_thread();
  ParkMark* find_mark(int32_t tid);

  std::atomic<uint32_t> state_;    // a futex
  std::atomic<ParkMark*> worker_;  // its mark; nullptr: there was no round
  std::atomic<uint32_t> used_;     // marks [0, used_) have been in use
  uint32_t next_check_;            // the next mark to check for an ended thread
  Mutex mutex_;                    // guards which thread gets which mark
  ParkMark overflow_;              // shared by all threads beyond the table
  ParkMark marks_[kMarks];
};

// One round of the worker.
class ParkRound {
 public:
  explicit ParkRound(Parking& parking) : parking_(parking), mark_(parking.begin_round()) {}
  ~ParkRound() {
    if (mark_ != nullptr) parking_.leave(mark_);
  }
  ParkRound(const ParkRound&) = delete;
  ParkRound& operator=(const ParkRound&) = delete;
  bool rests() const { return mark_ == nullptr; }

 private:
  Parking& parking_;
  ParkMark* mark_;
};

}  // namespace gpurota::interposer
