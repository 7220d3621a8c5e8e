// The simulated machine's time, and the state of its tenants. For turns_world_test.cpp only.
#pragma once

#include "sched/turns_blocks_test.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>

namespace gpurota::sched::testing_world {

inline Duration to_duration(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}
inline double to_seconds(TimePoint t) {
  return std::chrono::duration<double>(t.time_since_epoch()).count();
}

struct GpuMemory {
  Bytes resident, out, wired;
  Bytes hosted;                // in host memory for good
  Bytes beside;                // taken without asking
  Bytes lingering;             // reported as evicted, but in use on the GPU until the next sample
  Blocks blocks;               // blocks of `resident` and `out`, except for Shape::kAny
  Bytes to_evict, to_restore;  // orders not carried out yet
  bool evicting = false;
  Bytes arriving;  // the piece that is being restored: in GPU memory already
};

struct Growth {
  std::size_t gpu = 0;
  Bytes bytes;
  bool wired = false;
  bool hosted = false;
  Bytes rest{};   // to request in GPU memory once `bytes` is granted
  int tries = 0;  // that failed because others were faster
};

struct Tenant {
  TenantId id;
  std::size_t lease = 0;
  int place = 0;  // within its lease
  std::mt19937_64 random;
  std::vector<GpuMemory> gpus;
  bool stopped = false, dead = false, gone = false;
  bool known = false;  // the daemon knows it
  bool heard = true;   // the daemon knows whether it is stopped
  bool moves = false;  // its thread that moves blocks is at work
  double fails_until = -1;
  bool open = false;
  bool busy = false;
  bool wants = false;  // is in a phase of work
  std::uint32_t gate_seq = 0;
  double work_left = 0;
  double busy_since = 0;
  double asked_at = -1;  // when its current request came; negative: none yet
  int owes = 0;          // submissions of this tenant that a sibling's kernel waits for
  bool stuck = false;
  bool captures =
      false;  // records a graph: the graph needs its memory to end, and its work needs the graph
  long shift = 0;                            // outdates timers of an earlier state
  std::vector<std::function<void()>> inbox;  // while stopped
  std::uint32_t grow_seq = 0;
  std::map<std::uint32_t, Growth> growing;
  double said_until = 0;     // when its last message arrives: messages keep their order
  double ordered_until = 0;  // when the daemon's last message to it arrives

  double uniform() { return static_cast<double>(random() >> 11) / 9007199254740992.0; }
};

// Virtual time and its events.
class Timeline {
 protected:
  explicit Timeline(const Plan& plan) : plan_(plan), lost_(plan.gpus.size()) {}
  ~Timeline() = default;

  struct Entry {
    double at;
    long order;
    std::function<void()> run;
    bool operator<(const Entry& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  static TimePoint at(double s) { return TimePoint{} + to_duration(s); }
  void after(double delay, std::function<void()> run) {
    queue_.push({now_ + delay, ++order_, std::move(run)});
  }
  void fail(const std::string& text) {
    if (outcome_.failure.empty()) outcome_.failure = std::to_string(now_) + " s: " + text;
  }
  void note(const std::string& text) {
    trace_.push_back(std::to_string(now_) + "  " + text);
    if (trace_.size() > 400) trace_.pop_front();
  }
  bool move_fails(const Tenant& t, std::size_t g) const {
    return now_ < t.fails_until || lost_[g] != 0;
  }
  const LeasePlan& plan_of(const Tenant& t) const { return plan_.leases[t.lease]; }
  std::size_t gpu_index(const GpuUuid& uuid) const {
    std::size_t i = 0;
    while (plan_.gpus[i].uuid != uuid) ++i;
    return i;
  }
  Tenant* find(TenantId id) {
    for (const auto& t : tenants_) {
      if (t->id == id) return t.get();
    }
    return nullptr;
  }

  const Plan plan_;
  Outcome outcome_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
  std::priority_queue<Entry> queue_;
  std::deque<std::string> trace_;
  std::vector<char> lost_;  // GPUs that do not answer
  double now_ = 0;
  long order_ = 0;
  long epoch_ = 0;  // of the daemon
};

}  // namespace gpurota::sched::testing_world
