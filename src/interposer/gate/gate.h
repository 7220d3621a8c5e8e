// The gate of a tenant: whether its threads may give the GPU work now.
//
// Passing the open gate costs two stores, a load and a store: the thread marks itself inside and
// counts, reads the gate, calls the driver, and unmarks itself. Closing the gate is expensive: the
// closing thread shuts the gate, makes every thread's marks visible (membarrier), and waits for the
// threads inside. So no call is in the driver once wait_inside() returns true, and none gets in
// before the gate is opened, except
//   - calls that a thread makes inside another gated call, or inside a callback of the driver (the
//     thread would wait for itself);
//   - calls that are recorded into a graph instead of submitted;
//   - submissions that are let through one by one, because something in flight waits for them.
//
// A waiting thread holds no lock. Threads come and go unannounced: a mark belongs to a thread id,
// and the mark of an ended thread does not count. All-zero memory is an open gate, which is what a
// forked child finds.
#pragma once

#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

// A call's class, from the column `class` of abi/driver_functions.tsv: `submits` or `residency`.
// Functions of other classes do not come to the gate.
enum class GateClass : uint8_t { kSubmits, kResidency };

// kShut: work waits while memory is resident. kAway: memory is being moved, or is evicted. Each
// state lets fewer calls pass than the one before.
enum class GateState : uint32_t { kOpen = 0, kShut = 1, kAway = 2 };

struct alignas(64) GateMark {
  std::atomic<int32_t> tid;  // 0: not in use
  std::atomic<uint32_t> depth;
  std::atomic<uint32_t> submissions;  // that came, modulo 2^32; only the mark's thread writes it
  uint32_t callbacks;                 // callbacks of the driver that this thread is in
};

// The mark of this thread; nullptr until the thread first comes to a gate. One gate per process.
extern __thread GateMark* t_gate_mark __attribute__((tls_model("initial-exec")));

// Whether the calling thread is inside its process's gate, or in a callback of the driver. Of
// threads that share a mark: whether one of them is.
inline bool is_inside_gate() {
  const GateMark* const mark = t_gate_mark;
  return mark != nullptr &&
         (mark->depth.load(std::memory_order_relaxed) > 0 || mark->callbacks > 0);
}

class Gate {
 public:
  static constexpr uint32_t kMarks = 4096;

  // For the program's threads. `captures` answers whether this call is only recorded; it is called
  // when the gate is not open. nullptr: refused, and the call must not be made. Without `waits`, a
  // call that would have to wait is refused too.
  template <typename Captures>
  GateMark* enter(GateClass what, Captures captures, bool waits = true) {
    GateMark* mark = t_gate_mark;
    if (mark == nullptr || mark->tid.load(std::memory_order_relaxed) == 0) {
      mark = register_thread();
    }
    const uint32_t depth = mark->depth.load(std::memory_order_relaxed);
    if (mark == &overflow_) {
      mark->depth.fetch_add(1);
    } else {
      mark->depth.store(depth + 1, std::memory_order_relaxed);
    }
    if (what == GateClass::kSubmits) {
      mark->submissions.store(mark->submissions.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a full fence through membarrier
    if (state_.load(std::memory_order_relaxed) != 0 &&
        !enter_slow(mark, depth, what, captures, waits)) {
      return nullptr;
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return mark;
  }

  void leave(GateMark* mark) {
    if (mark == nullptr) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (mark == &overflow_) {
      mark->depth.fetch_sub(1);
    } else {
      const uint32_t depth = mark->depth.load(std::memory_order_relaxed);
      if (depth > 0) mark->depth.store(depth - 1, std::memory_order_release);
    }
    if (state_.load(std::memory_order_relaxed) != 0) tell_closer();
  }

  // The two functions go around a callback of the driver's: calls made in the callback pass, and
  // the callback does not count as inside.
  void begin_callback();
  void end_callback();

  // For the helper thread. Takes effect for threads that are not inside yet.
  void set(GateState state);
  GateState state() const;
  // While `refuse`, threads that wait at the gate, or come to it, get an error: nobody is left to
  // open the gate.
  void set_refusing(bool refuse);
  // Lets one submission through: one that waits, or the next that comes.
  void let_one_through();
  // Whether a submission was let through since the last call. If the gate is kAway and nobody is
  // inside, the answer covers all submissions that have passed so far.
  bool take_let_through() { return let_through_.exchange(0) != 0; }
  // Waits until nobody is inside; false at the deadline.
  bool wait_inside(int64_t deadline_ms);
  // Changes with every submission that comes to the gate. Submissions of threads that share a mark
  // may be missed.
  uint32_t submissions() const;
  // Calls that wait at the gate.
  uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Changes whenever a thread comes to the gate or leaves it while it is not open. A futex to wait
  // on.
  std::atomic<uint32_t>& changes() { return changes_; }
  void poke() { tell_closer(); }

 private:
  // Set in `state_` where the kernel has no membarrier, so that every thread must fence for itself:
  // as `state_` is then never 0, every call takes the slow path.
  static constexpr uint32_t kFence = 1u << 31;

  template <typename Captures>
  bool enter_slow(GateMark* mark, uint32_t depth, GateClass what, Captures captures, bool waits) {
    if (depth > 0 || mark->callbacks > 0) return true;
    ErrnoGuard guard;
    bool asked = false;
    while (!may_pass(what)) {
      // The thread does not count as inside while captures() asks the driver, or while it waits.
      unmark(mark);
      if (!asked && captures()) {
        remark(mark);
        return true;
      }
      asked = true;
      if (!waits || refusing_.load() != 0) return false;
      stand(what);
      remark(mark);
    }
    return true;
  }

  void find_barrier();  // with the mutex held
  GateMark* register_thread();
  GateMark* find_mark(int32_t tid);
  bool may_pass(GateClass what);
  void stand(GateClass what);
  void unmark(GateMark* mark);
  void remark(GateMark* mark);
  void tell_closer();

  std::atomic<uint32_t> state_;
  std::atomic<uint32_t> turn_;  // futex: changes when somebody may pass
  std::atomic<uint32_t> passes_;
  std::atomic<uint32_t> let_through_;  // a pass was used
  std::atomic<uint32_t> refusing_;
  std::atomic<uint32_t> waiting_;
  std::atomic<uint32_t> changes_;
  std::atomic<uint32_t> used_;     // marks [0, used_) have been in use
  std::atomic<uint32_t> barrier_;  // 0: not registered yet, 1: membarrier, 2: there is none
  uint32_t next_check_;            // the next mark to check for an ended thread
  Mutex mutex_;                    // guards which thread gets which mark
  GateMark overflow_;              // shared by all threads beyond the table
  GateMark marks_[kMarks];
};

// Holds one call inside the gate.
class GateGuard {
 public:
  template <typename Captures>
  GateGuard(Gate& gate, GateClass what, Captures captures)
      : gate_(gate), mark_(gate.enter(what, captures)) {}
  ~GateGuard() { gate_.leave(mark_); }
  bool refused() const { return mark_ == nullptr; }
  GateGuard(const GateGuard&) = delete;
  GateGuard& operator=(const GateGuard&) = delete;

 private:
  Gate& gate_;
  GateMark* mark_;
};

}  // namespace gpurota::interposer
