// The state that TurnTable keeps of each lease, tenant and GPU. Private to src/sched.
#pragma once

#include "sched/cost.h"
#include "sched/fairness.h"
#include "sched/residency.h"

#include <deque>
#include <map>
#include <set>

namespace gpurota::sched {

// kApart: the gates are shut; no turn. kEntering: the lease has the turn, and its memory is being
// restored. kHolding: the gates are open. kLeaving: the gates are shut, and the work drains. While
// none of its GPUs takes turns, a lease with tenants stays in kHolding.
enum class Phase { kApart, kEntering, kHolding, kLeaving };

struct PendingGrow {
  GpuSlot gpu;
  std::uint32_t seq = 0;
  Bytes bytes;
  bool wired = false;
};

// The debt of a tenant: how long the tenant has not carried out its orders to move memory on one
// GPU. Memory that moves reduces the debt. The lease ends if the debt reaches
// Settings::longest_drain.
struct MoveDebt {
  Duration owed{};      // time with open orders since it last carried out a whole order
  bool partly = false;  // part of the order under way will not be carried out
  std::optional<Duration>
      given_back{};  // end of an order not fully done (TurnTable::awake); reset by the next order
};

enum class DebtTold { kNothing, kHalf, kEnd };

struct TenantState {
  LeaseId lease;
  bool reachable = true;
  bool dead = false;
  unsigned lets = 0;  // submissions let through since its gate was closed
  bool gate_open = false;
  std::uint32_t gate_seq = 0;  // of the last order
  std::uint32_t seen_seq = 0;  // of the last order that was carried out
  bool busy = false;
  // The tenant may still have work from before its gate was shut: the last daemon shut the gate, or
  // the tenant was stopped meanwhile. `busy` alone does not show such work: captures and graphs are
  // not submitted, so any tenant may be at work with a shut gate.
  bool undrained = false;
  std::uint32_t waiting = 0;
  std::uint32_t ready = 0;
  TimePoint retry_at{};        // no eviction of its memory before then
  bool moved_nothing = false;  // an eviction moved nothing; reset when the tenant frees memory
  std::deque<PendingGrow> growth;
  std::vector<Grow> asked_on_hold;
  std::map<GpuSlot, MoveDebt> moves;

  bool can_answer() const { return reachable && !dead; }
  bool answered() const { return seen_seq == gate_seq; }
  bool drained() const { return answered() && !busy; }
  bool asks() const { return waiting > 0 || !growth.empty(); }
};

// The part of a tenant's memory on one GPU that is free soon, whoever gets the room. Zero for a
// dead tenant: nobody knows when its memory comes free.
inline Bytes on_its_way_out(const TenantState& tenant, const Holding& held) {
  return tenant.dead ? Bytes() : held.leaving + held.lingering;
}

// Submissions that are let through while a leaving lease does not drain.
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
  Average cost;                          // of moving for its turns, in seconds
  std::optional<MoveCost> speed;         // of switches to this lease; empty: none was measured
  TimePoint entering_since{};            // or when its predecessors had drained
  TimePoint turn_since{};                // of the current quantum
  TimePoint closed_at{};                 // when this leaving began
  Duration closed_awake{};               // the same, by TurnTable::awake
  TimePoint held_last{};                 // end of its last turn
  TimePoint retry_at{};                  // does not enter before then: memory did not come back
  bool moved_nothing = false;            // by a restore; reset when a tenant frees memory
  std::optional<TimePoint> waits_since;  // wants, and has no turn
  Letting letting;
  bool aside = false;     // see Turns::set_aside
  bool backfill = false;  // uses GPUs kept for another lease, until all GPUs of that lease are free
  bool reported = false;  // a report said that it does not yield
  std::optional<TimePoint> no_room_since;  // wants, and does not fit beside unmovable memory
  bool no_room_reported = false;
  bool is_held_up = false;  // at the last check: needs memory of processes that cannot answer
  Duration held_up{};       // for how long, since it last held a turn or wanted none
  Duration drain_owed{};    // how long others waited for its work to end, since it last drained
  DebtTold debt_told = DebtTold::kNothing;
};

struct Moved {
  Bytes in, out;
  Bytes clean;      // part of `out` not copied, as host memory had it already
  Duration took{};  // that leases took to enter, including abandoned attempts
};

struct SwitchRecord {
  TimePoint at;
  LeaseId from;  // 0: no earlier holder
  LeaseId to;
  Moved moved;  // since the previous switch
};

// Since the scheduler was made.
struct MoveCounts {
  std::uint64_t evictions = 0;  // orders to evict
  std::uint64_t handovers = 0;  // turns that went from one lease to another
  Bytes evicted, restored;
};

struct GpuState {
  GpuSettings settings;
  bool contended = false;
  std::optional<TimePoint> fits_since;
  PriorityBudget budget;
  bool draining = false;  // the budget drains, because a lease of lower priority is held back
  bool spent = false;     // the budget of this GPU, or of a GPU needed together with it, is spent
  MoveCost cost;
  LeaseId last_holder;
  MoveCounts counts;
  Moved since_switch;    // not yet in a switch; each byte will be in exactly one
  Moved since_entering;  // since a lease last began to enter
  std::deque<SwitchRecord> switches;
  std::optional<TimePoint> over_since;  // more of the GPU's memory is used than its capacity
  bool over_reported = false;
};

}  // namespace gpurota::sched
