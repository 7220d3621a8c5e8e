// The view of turns for people: who holds, who waits and for what. Plain data, filled by Turns.
#pragma once

#include "sched/turn_state.h"

namespace gpurota::sched {

enum class Wait {
  kNothing,        // it holds, or wants nothing
  kTurn,           // others go first
  kMoving,         // it has the turn; memory is on the way
  kDraining,       // it has the turn; the last holder's work is not done
  kStopped,        // a process of its own cannot answer
  kHeldByStopped,  // a process that cannot answer has memory that the lease needs
  kNoRoom,         // it no longer fits: memory that cannot be moved has grown
  kNoHost,         // nothing can be evicted for it: host memory is full
  kRetry,          // after a move that failed
  kRestart,        // the daemon has just started
  kLost,           // some of its memory was evicted from a GPU that is lost
  kAside,          // until nobody needs its GPU: Turns::set_aside
};
const char* to_string(Wait wait);
const char* to_string(Phase phase);

struct LeaseView {
  struct Gpu {
    GpuUuid uuid;
    Bytes resident, out, wired;
  };
  LeaseId lease;
  Phase phase = Phase::kApart;
  bool takes_turns = false;
  bool above_soft = false;  // above its soft limit: leases not above their own go first
  Wait wait = Wait::kNothing;
  LeaseId behind;    // the lease that it waits for, or that `process` belongs to; 0: none
  TenantId process;  // that cannot answer; 0: none
  int position = 0;  // 1: next; 0: does not wait
  std::optional<TimePoint> earliest;  // when the wait may end if no holder yields before
  Duration quantum{};
  std::vector<Gpu> gpus;
};

// The part of a LeaseView that needs no comparison with other leases: cheap enough for all leases
// every second.
struct LeaseTurn {
  bool takes_turns = false;
  bool holds = false;  // or is entering
  bool waits = false;  // for its turn, or for what it needs to begin the turn
  Bytes out;           // moved out of its GPUs
};

struct GpuView {
  GpuSettings settings;
  bool takes_turns = false;
  Bytes used, deficit;
  LeaseId holder;                     // 0: none, or no turns are taken
  std::vector<LeaseId> waiting;       // in order
  std::deque<SwitchRecord> switches;  // newest last
  Moved since_switch;                 // not yet in any of `switches`
  MoveCounts counts;
};

}  // namespace gpurota::sched
