#include "interposer/driver/parking.h"

#include <linux/membarrier.h>

namespace gpurota::interposer {

__thread ParkMark* t_park_mark __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr int64_t kStoresTakeMs = 5;
// With this many marks in use, a new thread looks for marks of threads that have ended.
constexpr uint32_t kMarksBeforeLooking = 64;

bool lives(int32_t tid) {
  return ::syscall(SYS_tgkill, sys_getpid(), tid, 0) == 0 || errno != ESRCH;
}

}  // namespace

// A reused thread id finds the mark of the ended thread that had it, and takes the mark over.
ParkMark* Parking::find_mark(int32_t tid) {
  const uint32_t used = used_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (marks_[i].tid.load(std::memory_order_relaxed) == tid) return &marks_[i];
  }
  for (uint32_t n = 0; n < used && used >= kMarksBeforeLooking; ++n) {
    const uint32_t i = next_check_++ % used;
    if (!lives(marks_[i].tid.load(std::memory_order_relaxed))) return &marks_[i];
  }
  if (used == kMarks) return nullptr;
  used_.store(used + 1, std::memory_order_relaxed);
  return &marks_[used];
}

ParkMark* Parking::register_thread() {
  ErrnoGuard guard;
  const int32_t tid = sys_gettid();
  Lock lock(mutex_);
  ParkMark* mark = find_mark(tid);
  if (mark == nullptr) {
    overflow_.tid.store(-1, std::memory_order_relaxed);
    mark = &overflow_;
  } else {
    mark->depth.store(0, std::memory_order_relaxed);
    mark->tid.store(tid, std::memory_order_release);
  }
  t_park_mark = mark;
  return mark;
}

// A question inside a question passes: its thread would wait for itself. A thread does not count as
// asking while it waits.
ParkMark* Parking::enter_slow(ParkMark* mark, uint32_t depth, bool may_answer,
                              const std::atomic<uint32_t>& captures) {
  if (depth > 0 && mark != &overflow_) return mark;
  ErrnoGuard guard;
  for (;;) {
    const uint32_t seen = state_.load();
    const auto state = static_cast<ParkState>(seen);
    if (state == ParkState::kRuns || state == ParkState::kRests) return mark;
    mark->depth.fetch_sub(1);
    if (state == ParkState::kParked && may_answer && captures.load() == 0) return nullptr;
    futex_wait(&state_, seen, nullptr);
    mark->depth.fetch_add(1);
  }
}

ParkMark* Parking::begin_round() {
  ParkMark* mark = t_park_mark;
  if (mark == nullptr || mark->tid.load(std::memory_order_relaxed) == 0) mark = register_thread();
  worker_.store(mark);
  mark->depth.fetch_add(1);
  if (state() == ParkState::kRuns) return mark;
  mark->depth.fetch_sub(1);
  return nullptr;
}

// The process registers for membarrier only now, because that can take milliseconds. Where
// membarrier is forbidden, the stores of other threads are waited for, which reach memory in
// microseconds.
void Parking::set(ParkState state) {
  ErrnoGuard guard;
  state_.store(static_cast<uint32_t>(state));
  const bool seen =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (!seen) sleep_ms(kStoresTakeMs);
  futex_wake(&state_, INT32_MAX);
}

bool Parking::nobody_asks() {
  ErrnoGuard guard;
  if (overflow_.depth.load() > 0) return false;
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < used; ++i) {
    const bool asks = marks_[i].depth.load(std::memory_order_acquire) > 0;
    if (asks && lives(marks_[i].tid.load(std::memory_order_relaxed))) return false;
  }
  return true;
}

}  // namespace gpurota::interposer
