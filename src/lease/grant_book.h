// All accounts: which tenant belongs to which lease, and what each holds on each GPU. Pure.
//
// Never does I/O: each operation gets the time as `now` and returns the messages to tenants. Used
// on the state thread only.
#pragma once

#include "base/maybe.h"
#include "core/gpu.h"
#include "core/lease.h"
#include "lease/account.h"
#include "lease/shared_book.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace gpurota::lease {

// A reply or recall, and its GPU.
struct AddressedGrantAction {
  GpuUuid gpu;
  GrantAction action;
};
using AddressedGrantActions = std::vector<AddressedGrantAction>;

struct HeldMemory {
  GpuUuid gpu;
  Bytes granted;
  int contexts = 0;
  std::optional<Bytes> overhead{};  // the measured cost of these contexts; nothing: not known
  bool settled = true;              // as Account::Holding
};

class GrantBook {
 public:
  // Opens an account for each GPU of which `lease` has a slice (swap leases are in sched). If the
  // lease has accounts, changes their limits; the new limits apply to later grants.
  void open(const Lease& lease);
  // Sets the delay of each grant above a soft limit, for all leases; zero: none.
  void set_throttle(Duration throttle);
  // Call after a limit was lowered: recalls the unused grants of the lease's tenants.
  AddressedGrantActions recall_excess(LeaseId lease);
  // Call when the lease and its memory are gone.
  void close(LeaseId lease);

  void add_tenant(TenantId tenant, LeaseId lease, const std::vector<HeldMemory>& held);
  AddressedGrantActions disconnect(TenantId tenant, TimePoint now);
  AddressedGrantActions mark_dead(TenantId tenant, TimePoint now);
  void forget(TenantId tenant);
  // `by`, which was just added, must be the same process on a new connection.
  void replace(TenantId old, TenantId by);

  AddressedGrantActions grow(const GpuUuid& gpu, const GrowRequest& request, TimePoint now);
  AddressedGrantActions give_back(TenantId tenant, const GpuUuid& gpu, Bytes bytes,
                                  std::uint32_t recall, std::uint32_t grown_seq, TimePoint now);
  void set_contexts(TenantId tenant, const GpuUuid& gpu, int contexts, TimePoint now);

  // Records memory that several processes have (abi/wire_share.h): `bytes` of the tenant's grant. A
  // swap lease has no account, so only the holders of its shared memory are recorded.
  void hold_shared(TenantId tenant, const GpuUuid& gpu, MemoryKey key, Bytes bytes);
  struct Joined {
    bool is_counted = false;  // charged to the lease already, so the tenant's grant includes it now
    Bytes bytes;              // zero: no process has reported it
  };
  Joined join_shared(TenantId tenant, const GpuUuid& gpu, MemoryKey key);
  struct EndOfShared {
    MemoryKey key = 0;
    Bytes returned;  // the part of the grant that is returned with the memory
  };
  AddressedGrantActions end_shared(TenantId tenant, const GpuUuid& gpu, const EndOfShared& end,
                                   TimePoint now);
  // The part of all leases' charges on the GPU that counts memory more than once.
  Bytes counted_by_several(const GpuUuid& gpu) const { return shared_.counted_by_several(gpu); }

  struct TenantMeasurement {
    TenantId tenant;
    Measurement measurement;
  };
  // One sample of one GPU for one lease.
  AddressedGrantActions measure(LeaseId lease, const GpuUuid& gpu,
                                const std::vector<TenantMeasurement>& tenants, Bytes outsiders,
                                TimePoint now);
  void hold_until(LeaseId lease, TimePoint when);
  // Ends the hold on this GPU; waiting requests are served with the next measurement.
  void release_hold(LeaseId lease, const GpuUuid& gpu);

  AddressedGrantActions serve(TimePoint now);
  std::optional<TimePoint> next_deadline() const;

  // The assumed cost of a context on this GPU: the least that a tenant's first context was seen to
  // take, because larger figures may include modules. Zero while no first context was seen.
  Bytes context_cost(const GpuUuid& gpu) const;
  // The cost to assume for a context before its creation: context_cost(), or while that is zero,
  // more than any context was measured to take.
  Bytes context_reserve(const GpuUuid& gpu) const;
  // Records the measured cost of a first context.
  void learn_context_cost(const GpuUuid& gpu, Bytes cost);
  // The account of a lease on a GPU. Nothing: the lease is not open, or has no account on this GPU
  // (it is exclusive, or has another GPU).
  Maybe<const Account> find(LeaseId lease, const GpuUuid& gpu) const;
  std::optional<LeaseId> lease_of(TenantId tenant) const;
  // The memory that a tenant holds on each GPU of its lease.
  std::vector<HeldMemory> held_by(TenantId tenant) const;
  // Whether any account still counts the tenant.
  bool counts(TenantId tenant) const;
  // Whether dead tenants are still counted, because their memory is not free yet.
  bool has_dead(LeaseId lease) const;
  // Grows with every change that may affect a figure above; results made from older figures are
  // stale.
  std::uint64_t changes() const { return changes_; }
  // Whether something on this GPU waits for the next measurement: sample the GPU soon.
  bool expects_measurement(const GpuUuid& gpu) const;

 private:
  using Key = std::pair<LeaseId, GpuUuid>;

  // Passes to the account what the tenant shares.
  void tell_shared(TenantId tenant, const SharedPlace& place, Bytes adopted = {});
  // Appends the account's actions with their GPU to `into`.
  static void collect(const GpuUuid& gpu, const GrantActions& actions, AddressedGrantActions& into);
  Maybe<Account> account(TenantId tenant, const GpuUuid& gpu);
  template <class Visit>
  void for_each_account(LeaseId lease, Visit visit);

  std::map<Key, Account> accounts_;
  std::uint64_t changes_ = 0;
  Duration throttle_{};
  std::unordered_map<TenantId, LeaseId> tenants_;
  SharedBook shared_;
  std::unordered_map<GpuUuid, Bytes> context_costs_;
};

}  // namespace gpurota::lease
