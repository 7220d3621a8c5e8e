#include "interposer/gate/gate.h"

#include <linux/membarrier.h>

namespace gpurota::interposer {

__thread GateMark* t_gate_mark __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr uint32_t kMembarrier = 1;
constexpr uint32_t kNoMembarrier = 2;
// With this many marks in use, a new thread looks for marks of threads that have ended.
constexpr uint32_t kBeforeLooking = 64;
// How often wait_inside() reads the marks: a thread that left just before the gate was shut did not
// notify.
constexpr int64_t kMarkCheckMs = 1;

bool is_alive(int32_t tid) {
  return ::syscall(SYS_tgkill, sys_getpid(), tid, 0) == 0 || errno != ESRCH;
}

}  // namespace

// A reused thread id finds the mark of the ended thread that had it, and takes the mark over.
GateMark* Gate::find_mark(int32_t tid) {
  const uint32_t used = used_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (marks_[i].tid.load(std::memory_order_relaxed) == tid) return &marks_[i];
  }
  for (uint32_t n = 0; n < used && used >= kBeforeLooking; ++n) {
    const uint32_t i = next_check_++ % used;
    const int32_t owner = marks_[i].tid.load(std::memory_order_relaxed);
    if (owner == 0 || !is_alive(owner)) return &marks_[i];
  }
  if (used == kMarks) return nullptr;
  used_.store(used + 1, std::memory_order_relaxed);
  return &marks_[used];
}

void Gate::find_barrier() {
  if (barrier_.load(std::memory_order_relaxed) != 0) return;
  const bool ok = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (!ok) state_.fetch_or(kFence);
  barrier_.store(ok ? kMembarrier : kNoMembarrier);
}

GateMark* Gate::register_thread() {
  ErrnoGuard guard;
  const int32_t tid = sys_gettid();
  Lock lock(mutex_);
  find_barrier();
  GateMark* mark = find_mark(tid);
  if (mark == nullptr) {
    overflow_.tid.store(-1, std::memory_order_relaxed);
    mark = &overflow_;
  } else {
    mark->depth.store(0, std::memory_order_relaxed);
    mark->callbacks = 0;
    mark->tid.store(tid, std::memory_order_release);
  }
  t_gate_mark = mark;
  return mark;
}

// Issues a fence first, for kernels without membarrier. A submission passes when the gate is open,
// or takes one of the passes if the gate is kShut. A call that only needs resident memory passes
// unless the gate is kAway.
bool Gate::may_pass(GateClass what) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t state = state_.load() & ~kFence;
  if (state == static_cast<uint32_t>(GateState::kOpen)) return true;
  if (state == static_cast<uint32_t>(GateState::kAway)) return false;
  if (what == GateClass::kResidency) return true;
  uint32_t left = passes_.load();
  while (left > 0) {
    if (!passes_.compare_exchange_weak(left, left - 1)) continue;
    let_through_.store(1);
    return true;
  }
  return false;
}

void Gate::unmark(GateMark* mark) {
  mark->depth.fetch_sub(1);
  tell_closer();
}

void Gate::remark(GateMark* mark) { mark->depth.fetch_add(1); }

void Gate::stand(GateClass what) {
  const uint32_t turn = turn_.load();
  waiting_.fetch_add(1);
  tell_closer();
  // Read the gate again: an earlier change shows here, and a later one changes `turn_`, which ends
  // the wait.
  const uint32_t state = state_.load() & ~kFence;
  const bool passes_now = state == static_cast<uint32_t>(GateState::kOpen) ||
                          (state == static_cast<uint32_t>(GateState::kShut) &&
                           (what == GateClass::kResidency || passes_.load() > 0));
  if (!passes_now && refusing_.load() == 0) futex_wait(&turn_, turn, nullptr);
  waiting_.fetch_sub(1);
}

void Gate::tell_closer() {
  ErrnoGuard guard;
  changes_.fetch_add(1);
  futex_wake(&changes_, 1);
}

void Gate::begin_callback() {
  GateMark* mark = t_gate_mark;
  if (mark == nullptr || mark->tid.load(std::memory_order_relaxed) == 0) mark = register_thread();
  if (mark != &overflow_) ++mark->callbacks;
}

void Gate::end_callback() {
  GateMark* mark = t_gate_mark;
  if (mark != nullptr && mark != &overflow_ && mark->callbacks > 0) --mark->callbacks;
}

void Gate::set(GateState state) {
  ErrnoGuard guard;
  {
    Lock lock(mutex_);
    find_barrier();
  }
  const uint32_t fence = state_.load() & kFence;
  if (state == GateState::kOpen) passes_.store(0);
  state_.store(static_cast<uint32_t>(state) | fence);
  if (barrier_.load() == kMembarrier) {
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
  turn_.fetch_add(1);
  futex_wake(&turn_, INT32_MAX);
}

GateState Gate::state() const { return static_cast<GateState>(state_.load() & ~kFence); }

uint32_t Gate::submissions() const {
  uint32_t sum = overflow_.submissions.load(std::memory_order_relaxed);
  const uint32_t used = used_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) sum += marks_[i].submissions.load(std::memory_order_relaxed);
  return sum;
}

void Gate::set_refusing(bool refuse) {
  ErrnoGuard guard;
  if (refusing_.exchange(refuse ? 1 : 0) == (refuse ? 1u : 0u)) return;
  turn_.fetch_add(1);
  futex_wake(&turn_, INT32_MAX);
}

void Gate::let_one_through() {
  ErrnoGuard guard;
  passes_.store(1);
  turn_.fetch_add(1);
  futex_wake(&turn_, INT32_MAX);
}

// A thread that died inside counts as having left. The marks are read repeatedly, because a thread
// that left just before the gate was shut did not notify.
bool Gate::wait_inside(int64_t deadline_ms) {
  ErrnoGuard guard;
  for (;;) {
    const uint32_t seen = changes_.load();
    bool inside = overflow_.depth.load() > 0;
    const uint32_t used = used_.load();
    for (uint32_t i = 0; i < used && !inside; ++i) {
      inside = marks_[i].depth.load(std::memory_order_acquire) > 0 &&
               is_alive(marks_[i].tid.load(std::memory_order_relaxed));
    }
    if (!inside) return true;
    if (now_ms() >= deadline_ms) return false;
    const timespec wait = to_timespec(kMarkCheckMs);
    futex_wait(&changes_, seen, &wait);
  }
}

}  // namespace gpurota::interposer
