// All accounts: which tenant belongs to which lease, and what each holds on each GPU. Pure.
//
// The ledger of the daemon: an operation comes in with `now`, what has to be said to tenants comes
// out. Used on the state thread only.
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

// A reply or recall, and the GPU it is about.
struct AddressedGrantAction {
  GpuUuid gpu;
  GrantAction action;
};
using AddressedGrantActions = std::vector<AddressedGrantAction>;

struct HeldMemory {
  GpuUuid gpu;
  Bytes granted;
  int contexts = 0;
  std::optional<Bytes> overhead{};  // what so many contexts were measured at; nothing: not known
  bool settled = true;              // as Account::Holding
};

class GrantBook {
 public:
  // Opens an account for each GPU that `lease` has a slice of (swap leases are sched's); again for
  // a lease that has one: the limits are set anew and hold for what comes next.
  void open(const Lease& lease);
  // How much later each grant above a soft limit comes; zero: at once. For all leases, from now on.
  void set_throttle(Duration throttle);
  // After a limit was lowered: calls back what tenants of the lease may hold and do not.
  AddressedGrantActions recall_excess(LeaseId lease);
  // The lease is gone, and its memory with it.
  void close(LeaseId lease);

  void add_tenant(TenantId tenant, LeaseId lease, const std::vector<HeldMemory>& held);
  AddressedGrantActions disconnect(TenantId tenant, TimePoint now);
  AddressedGrantActions mark_dead(TenantId tenant, TimePoint now);
  void forget(TenantId tenant);
  // `by`, which was just added, is the same process on a new connection.
  void replace(TenantId old, TenantId by);

  AddressedGrantActions grow(const GpuUuid& gpu, const GrowRequest& request, TimePoint now);
  AddressedGrantActions give_back(TenantId tenant, const GpuUuid& gpu, Bytes bytes,
                                  std::uint32_t recall, std::uint32_t grown_seq, TimePoint now);
  void set_contexts(TenantId tenant, const GpuUuid& gpu, int contexts, TimePoint now);

  // Memory that several processes have (abi/wire_share.h). Of a swap lease, which has no account,
  // it is only known who has it. `bytes` of the tenant's grant are this memory.
  void hold_shared(TenantId tenant, const GpuUuid& gpu, MemoryKey key, Bytes bytes);
  struct Joined {
    bool is_counted = false;  // for the lease already: it was added to the tenant's grant
    Bytes bytes;              // zero: nobody has told
  };
  Joined join_shared(TenantId tenant, const GpuUuid& gpu, MemoryKey key);
  struct EndOfShared {
    MemoryKey key = 0;
    Bytes returned;  // of the grant, with it
  };
  AddressedGrantActions end_shared(TenantId tenant, const GpuUuid& gpu, const EndOfShared& end,
                                   TimePoint now);
  // The part of all leases' charges on the GPU that counts memory again, as several have it.
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
  // On this GPU the hold is over; what waited is served with the next measurement.
  void release_hold(LeaseId lease, const GpuUuid& gpu);

  AddressedGrantActions serve(TimePoint now);
  std::optional<TimePoint> next_deadline() const;

  // The assumed cost of a context on this GPU: the least that a first one was seen to take, since
  // one that took more may have loaded modules; zero while none was seen.
  Bytes context_cost(const GpuUuid& gpu) const;
  // The cost to assume for a context before it is created: the above, or more than any that was
  // measured.
  Bytes context_reserve(const GpuUuid& gpu) const;
  // A first context was seen to take so much.
  void learn_context_cost(const GpuUuid& gpu, Bytes cost);
  // The account of a lease on a GPU. Nothing: it has none (exclusive, or not its GPU), or is not
  // open.
  Maybe<const Account> find(LeaseId lease, const GpuUuid& gpu) const;
  std::optional<LeaseId> lease_of(TenantId tenant) const;
  // The memory that a tenant holds on each GPU of its lease.
  std::vector<HeldMemory> held_by(TenantId tenant) const;
  // Whether any account still counts the tenant.
  bool counts(TenantId tenant) const;
  // Tenants that are counted though dead: their memory has not come back yet.
  bool has_dead(LeaseId lease) const;
  // Grows with everything that may have changed a figure above: what was made of them is then old.
  std::uint64_t changes() const { return changes_; }
  // Something on this GPU waits for the next measurement: sample it soon.
  bool expects_measurement(const GpuUuid& gpu) const;

 private:
  using Key = std::pair<LeaseId, GpuUuid>;

  // The account hears of what the tenant shares.
  void tell_shared(TenantId tenant, const SharedPlace& place, Bytes adopted = {});
  // Collects what the account says, addressed; and forgets tenants that no account counts any more.
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
