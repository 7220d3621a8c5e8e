// The state that TurnTable keeps of each lease, tenant and GPU. Private to src/sched.
#pragma once

#include "sched/cost.h"
#include "sched/fairness.h"
#include "sched/residency.h"

#include <deque>
#include <map>
#include <set>

namespace gpurota::sched {

// kApart: gates shut, no turn. kEntering: it has the turn and its memory is on the way. kHolding:
// its gates are open. kLeaving: gates are shut and its work drains. A lease none of whose GPUs take
// turns holds for ever.
enum class Phase { kApart, kEntering, kHolding, kLeaving };

struct PendingGrow {
  GpuSlot gpu;
  std::uint32_t seq = 0;
  Bytes bytes;
  bool wired = false;
};

// Of what a tenant was ordered to move on one GPU.
struct MoveDebt {
  Duration owed{};      // that it had orders to carry out, since it last carried out a whole one
  bool partly = false;  // of the order under way some will not be done
  std::optional<Duration>
      given_back{};  // when such an order ended (TurnTable::awake), until the next
};

enum class DebtTold { kNothing, kHalf, kEnd };

struct TenantState {
  LeaseId lease;
  bool reachable = true;
  bool dead = false;
  unsigned lets = 0;  // submissions let through since its gate was closed
  bool gate_open = false;
  std::uint32_t gate_seq = 0;  // of the last order
  std::uint32_t seen_seq = 0;  // of the last one it has carried out
  bool busy = false;
  // The tenant may have work from before its gate was shut, by the last daemon or while the tenant
  // was stopped. Any tenant may be at work with a shut gate, because captures and graphs are not
  // submitted.
  bool undrained = false;
  std::uint32_t waiting = 0;
  std::uint32_t ready = 0;
  TimePoint retry_at{};        // nothing of it is moved out before then
  bool moved_nothing = false;  // as it had nothing to bring out; until it says that it has less
  std::deque<PendingGrow> growth;
  std::vector<Grow> asked_on_hold;
  std::map<GpuSlot, MoveDebt> moves;

  bool can_answer() const { return reachable && !dead; }
  bool answered() const { return seen_seq == gate_seq; }
  bool drained() const { return answered() && !busy; }
  bool asks() const { return waiting > 0 || !growth.empty(); }
};

// Of what it holds: its room is free soon, whoever it is meant for. The dead have their memory as
// long as they like.
inline Bytes on_its_way_out(const TenantState& tenant, const Holding& held) {
  return tenant.dead ? Bytes() : held.leaving + held.lingering;
}

// Letting submissions through while a closed lease does not drain.
struct Letting {
  TimePoint since{};  // the close, or the last submission let through
  Duration patience{};
  TenantId last;
};

struct LeaseState {
  LeaseTerms terms;
  std::vector<GpuSlot> gpus;
  std::set<TenantId> tenants;
  Phase phase = Phase::kApart;
  FairClock clock;
  bool wanted = false;                  // at the last check
  bool takes_turns = false;             // at the last check
  bool above_soft = false;              // its soft limit, at the last check
  std::optional<TimePoint> idle_since;  // neither work nor anything waiting
  Pauses pauses;
  Average cost;                          // of its turns' moving, in seconds
  std::optional<MoveCost> speed;         // of switches to it, once one was measured
  TimePoint entering_since{};            // and since its predecessors have drained
  TimePoint turn_since{};                // of the current quantum
  TimePoint closed_at{};                 // the first close of this leaving
  Duration closed_awake{};               // the same, by TurnTable::awake
  TimePoint held_last{};                 // end of its last turn
  TimePoint retry_at{};                  // does not enter before then: memory did not come back
  bool moved_nothing = false;            // as there was none; until a tenant says that it has less
  std::optional<TimePoint> waits_since;  // wants, and has no turn
  Letting letting;
  bool aside = false;     // see Turns::set_aside
  bool backfill = false;  // holds GPUs that are kept for another, until that can have them all
  bool reported = false;  // that it does not yield
  std::optional<TimePoint> no_room_since;  // wants, and does not fit beside what nobody can move
  bool no_room_reported = false;
  bool is_held_up = false;  // at the last check: needs what processes have that cannot answer
  Duration held_up{};       // so long, since it last held a turn or wanted none
  Duration drain_owed{};    // that others waited for its work to end, since that last did
  DebtTold debt_told = DebtTold::kNothing;
};

struct Moved {
  Bytes in, out;
  Bytes clean;      // of out: not copied, as host memory had it already
  Duration took{};  // what leases took to enter, to the end or not
};

struct SwitchRecord {
  TimePoint at;
  LeaseId from;  // 0: nobody before
  LeaseId to;
  Moved moved;  // since the switch before
};

// Since the scheduler was made.
struct MoveCounts {
  std::uint64_t evictions = 0;  // times that memory of a tenant began to be moved out
  std::uint64_t handovers = 0;  // turns that went from one lease to another
  Bytes evicted, restored;
};

struct GpuState {
  GpuSettings settings;
  bool contended = false;
  std::optional<TimePoint> fits_since;
  PriorityBudget budget;
  bool draining = false;  // the budget: somebody lower is held back
  bool spent = false;     // it, or that of a GPU which somebody needs together with this one
  MoveCost cost;
  LeaseId last_holder;
  MoveCounts counts;
  Moved since_switch;    // no byte is in two switches, and none in no switch but for these
  Moved since_entering;  // of these, since the last lease began to enter
  std::deque<SwitchRecord> switches;
  std::optional<TimePoint> over_since;  // more is held than its capacity
  bool over_reported = false;
};

}  // namespace gpurota::sched
