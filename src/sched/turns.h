// The turn scheduler: which swap lease is resident and may submit, what moves where, and when.
//
// Events go in with `now`, actions come out; there is no clock, thread or I/O inside, so that a week
// can be simulated, replayed and explained. Used by the daemon on its state thread. What a tenant says is
// bounded by what is known of it; an event about somebody unknown is ignored.
//
// Promises, held by turns_simulation_test.cpp: memory that was asked for never exceeds a GPU's
// capacity or the host budget; two leases never hold the same GPU while it takes turns; a lease that
// wants a turn and can have one gets it within a bound; no GPU stands idle beside one that wants it.
#pragma once

#include "sched/turn_state.h"
#include "sched/turns_view.h"

#include <map>

namespace gpurota::sched {

class Turns {
 public:
  explicit Turns(const Settings& settings = {});

  void set(const Settings& settings);
  // Adds or changes a GPU, or has back one that was lost. Refused, with the reason, when what is there would no longer fit.
  // `anyway`: of a capacity that others have taken already; what does not fit is refused as it grows.
  Result<void> set_gpu(const GpuSettings& settings, bool anyway = false);
  void set_outsiders(const GpuUuid& gpu, Bytes bytes);
  // Refused when the lease could never be resident beside what others have wired, or host memory cannot
  // have what of it is to lie there.
  Result<void> add_lease(const LeaseTerms& terms);
  // One that was admitted by a daemon that is gone; what does not fit any more is refused as it grows. A GPU of it that is
  // not there now counts as lost: what the lease has there is kept as it is, until set_gpu.
  void restore_lease(const LeaseTerms& terms);
  void update_lease(const LeaseTerms& terms);
  // Its tenants should have gone; what is left of them goes with it.
  Actions remove_lease(LeaseId lease, TimePoint now);
  // After a daemon's restart: no decision before then, so that all tenants can come back.
  void hold_until(TimePoint when) { held_until_ = when; }
  bool on_hold(TimePoint now) const { return now < held_until_; }

  // Puts a lease aside, or takes it back: it gives its turn away, all its memory that can be moved is
  // evicted, and it stays apart, whoever is there. Others are admitted as if it never came back. Whoever does
  // either asks before whether there is room for it.
  Actions set_aside(LeaseId lease, bool aside, TimePoint now);
  // Whether host memory could take all that the lease has.
  bool could_be_aside(LeaseId lease) const;
  // Whether it could have its turns beside those that came meanwhile.
  bool could_come_back(LeaseId lease) const;

  Actions handle(const Event& event, TimePoint now);
  // When to call handle(Tick) if nothing happens before.
  std::optional<TimePoint> next_deadline() const;

  std::optional<LeaseView> explain(LeaseId lease, TimePoint now) const;
  // Of the GPUs that are there, in no order that means anything.
  std::vector<GpuView> view(TimePoint now) const;
  const Residency& residency() const { return memory_; }

 private:
  using Leases = std::map<LeaseId, LeaseState>;
  using Slots = std::vector<GpuSlot>;

  void on(const AddTenant& event);
  void on(const TenantDied& event);
  void on(const RemoveTenant& event);
  void on(const Reachable& event);
  void on(const TenantStatus& event);
  void on(const Grow& event);
  void judge_what_was_asked_on_hold();
  void on(const Shrink& event);
  void on(const Measured& event);
  void on(const Evicted& event);
  void on(const Restored& event);
  void on(const Tick&) {}

  // oversize.cpp
  Result<void> admit_oversize(const LeaseTerms& terms) const;
  void grow_hosted(const Grow& event, GpuSlot gpu, Bytes most);

  // Brings everything up to `now_` and collects what follows.
  void settle();
  void step();

  // turns_choose.cpp: who is next.
  struct Reservation {
    LeaseId lease;
    TimePoint until;  // when its holders will have had their quantum
  };
  void look_at_contention();
  void begin_contention(GpuSlot gpu);
  void keep_clocks();
  void keep_pauses(LeaseState& lease);
  void look_at_wishes();
  void join_line(LeaseState& lease);
  std::optional<double> least_served(const LeaseState& besides) const;
  void look_at_budgets();
  void look_at_spent_budgets();
  void resolve_conflicts();
  bool cannot_leave(const LeaseState& lease, GpuSlot gpu) const;
  bool waits_for_room(const LeaseState& lease, GpuSlot gpu) const;
  bool claims_more(const LeaseState& a, const LeaseState& b, GpuSlot gpu) const;
  void choose();
  void choose_for(LeaseState& lease, std::map<GpuSlot, Reservation>& reserved);
  bool yields(const LeaseState& holder, const LeaseState& to) const;
  bool may_backfill(const LeaseState& lease, const std::map<GpuSlot, Reservation>& reserved) const;
  void renew_quanta();
  std::vector<LeaseState*> waiting_in_order();
  bool goes_before(const LeaseState& a, const LeaseState& b) const;
  // When `holder` has to make way for `waiting` at the latest; TimePoint::max(): never, while it has work.
  TimePoint end_of_turn(const LeaseState& holder, const LeaseState& waiting) const;
  bool is_above_soft(const LeaseState& lease) const;
  static int rank(const LeaseState& lease);
  int effective_priority(const LeaseState& lease) const;
  bool wants(const LeaseState& lease) const;
  bool is_idle_enough(const LeaseState& holder, const LeaseState& to) const;
  Duration idle_before_release(const LeaseState& holder, const LeaseState& to) const;
  std::optional<Duration> quantum_as_set(const LeaseState& lease) const;
  Duration quantum(const LeaseState& lease) const;
  Duration move_estimate(const LeaseState& lease) const;
  Duration turn_cost(const LeaseState& lease) const;
  Slots turn_gpus(const LeaseState& lease) const;
  bool takes_turns(const LeaseState& lease, GpuSlot gpu) const;
  bool conflict(const LeaseState& a, const LeaseState& b) const;
  bool waits_for(const LeaseState& other, const LeaseState& holder) const;
  bool somebody_waits_for(const LeaseState& holder) const;
  std::vector<LeaseState*> claimants(const Slots& gpus, LeaseId except);

  // turns_phases.cpp: from one phase into the next.
  void leave_aside();
  void enter(LeaseState& lease, bool backfill);
  void abandon_entering(LeaseState& lease);
  void close(LeaseState& lease);
  void reopen(LeaseState& lease);
  void finish_entering(LeaseState& lease);
  void finish_leaving(LeaseState& lease);
  void stop_clock(LeaseState& lease);
  bool measure_move(const LeaseState& lease);
  bool has_moved(const LeaseState& lease) const;
  void record_switch(LeaseState& lease);
  void set_gate(TenantId id, GateOrder order);
  void open_resident(LeaseState& lease);
  void let_through(LeaseState& lease);
  void watch_deadline(LeaseState& lease);
  bool is_deadlocked(const LeaseState& lease) const;
  void refuse_growth(LeaseState& lease);

  // turns_move.cpp: what moves.
  void move();
  void look_at_excess(GpuSlot gpu);
  void make_room(GpuSlot gpu, Bytes lacking, bool entering_too);
  void give_room(LeaseState& lease, GpuSlot gpu);
  void serve_growth(LeaseState& lease, TenantId id, GpuSlot gpu);
  void evict_aside(GpuSlot gpu);
  Bytes lacking(GpuSlot gpu) const;
  std::vector<TenantId> victims(GpuSlot gpu, bool entering_too) const;
  Bytes order_out(TenantId tenant, GpuSlot gpu, Bytes bytes);

  // turns_room.cpp: what is in the way.
  static constexpr Duration kNoRoomLasts = std::chrono::seconds(2);
  static bool answers(const TenantState& tenant);
  bool can_give(const TenantState& tenant) const;  // its memory to others
  bool eligible(const LeaseState& lease) const;
  Wait hindrance(const LeaseState& lease) const;
  Wait hindrance(const LeaseState& lease, GpuSlot gpu) const;
  Bytes may_go_out() const;
  bool is_host_full(const Holding& own, GpuSlot gpu) const;
  bool waits_for_memory(const LeaseState& lease) const;
  void watch_room(LeaseState& lease, Wait obstacle);
  std::optional<TimePoint> held_up_until(const LeaseState& lease) const;
  TenantId has_most_of(const LeaseState& lease) const;
  void watch_stopped(LeaseState& lease, Wait obstacle);

  LeaseState* lease_of(TenantId tenant);
  void report(Trouble trouble, LeaseId lease, TenantId tenant, bool stop = false);
  Wait wait_of(const LeaseState& lease) const;

  Settings settings_;
  Residency memory_;
  std::vector<GpuState> gpus_;  // by slot
  Leases leases_;
  std::map<TenantId, TenantState> tenants_;
  TimePoint held_until_{};
  TimePoint now_{};
  bool changed_ = false;  // a phase, in this step: what was decided before may no longer hold
  Actions actions_;
};

}  // namespace gpurota::sched
