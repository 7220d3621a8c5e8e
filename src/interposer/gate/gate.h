// The gate of a tenant: whether its threads may give the GPU work now.
//
// While it is open, passing costs two stores, a load and a store: the thread marks itself inside
// and counts, looks at the gate, calls the driver, unmarks itself. Closing is the slow side's work:
// it shuts the gate, makes every thread's marks visible (membarrier), and waits for those that are
// inside. So no call is in the driver once wait_inside() says so, and none gets in before the gate
// is opened, except
//   - what a thread does inside another gated call, or inside a callback of the driver (it would
//     wait for itself);
//   - what is recorded into a graph instead of submitted;
//   - submissions that are let through one by one, because something in flight waits for them.
// No lock is held by a thread that waits. Threads come and go unannounced: a mark belongs to a
// thread id, and one whose thread is gone is no mark. All-zero memory is an open gate, which is
// what a forked child finds.
#pragma once

#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

// Column `class` of abi/driver_functions.tsv: submits; residency. A function that is neither does
// not come here.
enum class GateClass : uint8_t { kSubmits, kResidency };

// kShut: work waits; memory is there. kAway: memory is being moved, or is out. In both orders of
// growth.
enum class GateState : uint32_t { kOpen = 0, kShut = 1, kAway = 2 };

struct alignas(64) GateMark {
  std::atomic<int32_t> tid;  // 0: nobody's
  std::atomic<uint32_t> depth;
  std::atomic<uint32_t> submissions;  // that passed, modulo 2^32; its thread alone writes it
  uint32_t callbacks;                 // the driver's, that this thread is in
};

// The mark of this thread; nullptr until it first comes to a gate. One gate per process.
extern __thread GateMark* t_gate_mark __attribute__((tls_model("initial-exec")));

class Gate {
 public:
  static constexpr uint32_t kMarks = 4096;

  // For the program's threads. `captures` answers whether this call is only recorded; it is asked
  // when the gate is not open. nullptr: refused, the call must not be made; unless it `waits`, also
  // where it would have to.
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
    std::atomic_signal_fence(std::memory_order_seq_cst);  // membarrier makes it more than that
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

  // Around a callback of the driver's: what it calls passes, and it is not counted as inside.
  void begin_callback();
  void end_callback();

  // For the helper thread. Takes effect for whoever is not inside yet.
  void set(GateState state);
  GateState state() const;
  // Nobody is there any more who would open it: while `refuse`, those that wait, and that come, get
  // an error instead.
  void set_refusing(bool refuse);
  // Lets one submission that waits, or the next that comes, through.
  void let_one_through();
  // Whether any went through since this was last asked. With the gate away and nobody inside, it is
  // true of all that ever passed.
  bool take_let_through() { return let_through_.exchange(0) != 0; }
  // Waits until nobody is inside; false at the deadline.
  bool wait_inside(int64_t deadline_ms);
  // Changes with every submission that comes to the gate; of threads that share a mark some may not
  // count.
  uint32_t submissions() const;
  // Submissions that stand at the gate.
  uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Changes whenever somebody comes to the gate or leaves it while it is not open: to wait on.
  std::atomic<uint32_t>& changes() { return changes_; }
  void poke() { tell_closer(); }

 private:
  // Without membarrier every thread has to fence for itself: the gate then never looks open.
  static constexpr uint32_t kFence = 1u << 31;

  template <typename Captures>
  bool enter_slow(GateMark* mark, uint32_t depth, GateClass what, Captures captures, bool waits) {
    if (depth > 0 || mark->callbacks > 0) return true;
    ErrnoGuard guard;
    bool asked = false;
    while (!may_pass(what)) {
      // Asked unmarked: the answer comes from the driver.
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
  std::atomic<uint32_t> let_through_;  // one of them was used
  std::atomic<uint32_t> refusing_;
  std::atomic<uint32_t> waiting_;
  std::atomic<uint32_t> changes_;
  std::atomic<uint32_t> used_;     // marks [0, used_) have been somebody's
  std::atomic<uint32_t> barrier_;  // 0: not registered yet, 1: membarrier, 2: there is none
  uint32_t next_check_;            // at a mark whose thread may be gone
  Mutex mutex_;                    // over who gets which mark
  GateMark overflow_;              // of all threads beyond the table
  GateMark marks_[kMarks];
};

// One call's way through the gate.
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
