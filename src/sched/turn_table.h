// The state of the turn scheduler: GPUs, leases, tenants and their memory, with queries that
// several files share. Private to src/sched.
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
  Duration awake{};      // the clock of tenants' deadlines: counts at most kMostStep for each event
  bool changed = false;  // a phase changed in this step, so earlier decisions may be wrong
  Actions actions;       // that follow from the event being handled

  bool on_hold() const { return now < held_until; }
  LeaseState* lease_of(TenantId tenant);  // nullptr: unknown tenant

  // Whether the lease needs a turn: for work, or for memory that it has asked for.
  bool wants(const LeaseState& lease) const;
  bool takes_turns(const LeaseState& lease, GpuSlot gpu) const;
  Slots turn_gpus(const LeaseState& lease) const;
  // Whether both take turns on the same GPU.
  bool conflict(const LeaseState& a, const LeaseState& b) const;
  // The leases that have a turn on one of these GPUs, or have not left it yet.
  std::vector<LeaseState*> claimants(const Slots& of, LeaseId except);
  bool waits_for_room(const LeaseState& lease, GpuSlot gpu) const;
  // Whether the leaving lease waits for memory, and its work has not ended within
  // Settings::drain_patience: a capture ends only once it has the memory that it allocates.
  bool cannot_leave(const LeaseState& lease, GpuSlot gpu) const;
  bool can_give(const TenantState& tenant) const;  // whether its memory can be evicted now
  // How much eviction may be ordered: a piece less than the room in host memory. Blocks of up to a
  // piece move whole, so an order may move up to one block more.
  Bytes may_go_out() const;

  // The longest time that others have waited for the lease to drain, or to carry out orders to
  // move.
  Duration owed(const LeaseState& lease) const;
  // Whether the lease owes something, so that time counts.
  bool owes(const LeaseState& lease) const;

  void report(Trouble trouble, LeaseId lease, TenantId tenant, bool stop = false);
  void report_debt(LeaseId lease, Duration ends_in);
};

}  // namespace gpurota::sched
