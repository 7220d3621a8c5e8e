// The state of the scheduler of turns: GPUs, leases, tenants and their memory; and the questions
// that several of its files ask about that. Private to src/sched.
#pragma once

#include "sched/turn_state.h"

#include <algorithm>
#include <map>

namespace gpurota::sched {

using Slots = std::vector<GpuSlot>;

inline bool contains(const Slots& gpus, GpuSlot gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

struct TurnTable {
  Settings settings;
  Residency memory;
  std::vector<GpuState> gpus;  // by slot
  std::map<LeaseId, LeaseState> leases;
  std::map<TenantId, TenantState> tenants;
  TimePoint held_until{};  // no decision before then
  TimePoint now{};
  Duration awake{};      // that events came in: what counts against somebody counts by this
  bool changed = false;  // a phase, in this step: what was decided before may no longer hold
  Actions actions;       // what follows from the event that is being handled

  bool on_hold() const { return now < held_until; }
  LeaseState* lease_of(TenantId tenant);  // nullptr: nobody knows the tenant

  // Whether the lease has work, or is asked for memory, which needs its turn.
  bool wants(const LeaseState& lease) const;
  bool takes_turns(const LeaseState& lease, GpuSlot gpu) const;
  Slots turn_gpus(const LeaseState& lease) const;
  // Both take turns on the same GPU.
  bool conflict(const LeaseState& a, const LeaseState& b) const;
  // The leases that have a turn on one of these GPUs, or have not left it yet.
  std::vector<LeaseState*> claimants(const Slots& of, LeaseId except);
  bool waits_for_room(const LeaseState& lease, GpuSlot gpu) const;
  // Whether the lease waits for memory and its work has not ended by itself: a capture ends only
  // once it has the memory that it allocates.
  bool cannot_leave(const LeaseState& lease, GpuSlot gpu) const;
  bool can_give(const TenantState& tenant) const;  // its memory to others
  // The room in host memory. Blocks move whole: an order may move up to one block more.
  Bytes may_go_out() const;

  // How long others have waited for what the lease was told to do, of whichever it is the longest.
  Duration owed(const LeaseState& lease) const;
  // Something is owed, so that time counts.
  bool owes(const LeaseState& lease) const;

  void report(Trouble trouble, LeaseId lease, TenantId tenant, bool stop = false);
  void report_debt(LeaseId lease, Duration ends_in);
};

}  // namespace gpurota::sched
