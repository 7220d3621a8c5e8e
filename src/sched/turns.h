// The turn scheduler: which swap lease is resident and may submit, what moves where, and when.
//
// Events go in with `now`, actions come out; there is no clock, thread or I/O inside, so that a
// week can be simulated, replayed and explained. Used by the daemon on its state thread. A tenant's
// report is bounded by what is known of the tenant; an event about an unknown tenant is ignored.
//
// Promises, checked by turns_simulation_test.cpp: leases never hold more than a GPU's capacity or
// the host budget, except for memory that a process takes without asking; two leases never hold the
// same GPU while it takes turns; a lease that wants a turn and can have one gets it within a bound;
// no GPU stands idle while a lease waits for it.
//
// The state is a TurnTable. The functions on it are in turn_decide.h (who is next), turn_act.h
// (changes of the table), turn_watch.h (what is reported) and turn_show.h; turns.cpp calls them in
// the right order.
#pragma once

#include "sched/turn_table.h"
#include "sched/turns_view.h"

namespace gpurota::sched {

class Turns {
 public:
  explicit Turns(const Settings& settings = {});

  void set(const Settings& settings);
  // Adds a GPU, changes it, or adds it again after it was lost. An error, with the reason, if the
  // GPU's leases would no longer fit. With `anyway` there is never an error: use it when others
  // have already taken the rest of the GPU. Growth that does not fit is then refused later.
  Result<void> set_gpu(const GpuSettings& settings, bool anyway = false);
  void set_outsiders(const GpuUuid& gpu, Bytes bytes);
  // Whether a new lease can be added. An error when the lease could never be resident beside what
  // others have wired, or when host memory has no room for its oversize part.
  Result<void> check_lease(const LeaseTerms& terms) const;
  // Adds a lease that check_lease() or an earlier daemon has admitted. If the lease no longer fits,
  // its growth is refused later. A GPU that is not there now counts as lost: the lease's memory
  // there is kept in the books until set_gpu.
  void add_lease(const LeaseTerms& terms);
  bool has_lease(LeaseId lease) const { return table_.leases.contains(lease); }
  // Changes a lease. Does nothing if the lease was not added.
  void update_lease(const LeaseTerms& terms);
  // Removes a lease, and the tenants that it still has.
  Actions remove_lease(LeaseId lease, TimePoint now);
  // No decision before `when`, so that all tenants can connect again after the daemon's restart.
  void hold_until(TimePoint when) { table_.held_until = when; }
  bool on_hold(TimePoint now) const { return now < table_.held_until; }

  // Puts a lease aside, or takes it back. A lease that is put aside gives up its turn, all its
  // movable memory is evicted, and it gets no turn even if its GPUs are free. Other leases are
  // admitted as if it never came back. The caller first checks could_be_aside() or
  // could_come_back().
  Actions set_aside(LeaseId lease, bool aside, TimePoint now);
  // The lease is parked, or no longer (Residency::set_parked). Call it for a lease that is aside.
  Actions set_parked(LeaseId lease, bool parked, TimePoint now);
  // The memory that a program of the lease could be granted on this GPU now, by the same rules as a
  // growth.
  Bytes available(LeaseId lease, const GpuUuid& gpu) const;
  // Whether host memory could take all that the lease has.
  bool could_be_aside(LeaseId lease) const;
  // Whether the lease could have turns again beside leases that came meanwhile.
  bool could_come_back(LeaseId lease) const;

  Actions handle(const Event& event, TimePoint now);
  // When to call handle(Tick) if nothing happens before.
  std::optional<TimePoint> next_deadline() const;

  std::optional<LeaseView> explain(LeaseId lease, TimePoint now) const;
  std::optional<LeaseTurn> turn_of(LeaseId lease) const;
  // The GPUs that are not lost, in no particular order.
  std::vector<GpuView> view() const;
  const Residency& residency() const { return table_.memory; }

 private:
  Result<void> check_oversize(const LeaseTerms& terms) const;

  TurnTable table_;
};

}  // namespace gpurota::sched
