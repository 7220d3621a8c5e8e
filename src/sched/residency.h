// The ledger behind turns: how much memory each lease has where. Pure.
//
// For each GPU it keeps used = resident + on its way in + wired, of everyone. ResidencyRules judges
// growth of that, HostNeeds the host memory that it needs. Used by Turns only.
#pragma once

#include "base/maybe.h"
#include "sched/model.h"

#include <map>
#include <set>
#include <vector>

namespace gpurota::sched {

// Place of a GPU in the list of those that are managed. Not a PCI index.
using GpuSlot = Id<struct GpuSlotTag, std::uint32_t>;

struct Holding {
  Bytes movable;
  Bytes resident;  // of movable
  Bytes coming;    // restoring is ordered and not yet reported
  Bytes leaving;   // of resident: eviction is ordered and not yet reported
  Bytes wired;
  // Asked for and admitted, and no room made for it yet.
  Bytes unbacked;        // of movable
  Bytes wired_unbacked;  // beside wired
  Bytes
      lingering;  // not back yet, and soon to be: of a dead process, or of one whose word is doubted
  Bytes beside;   // wired, that it has not told of
  Bytes hosted{};  // in host memory for good; of nothing above

  Bytes missing() const { return movable - resident - coming - unbacked; }
  Bytes out() const { return movable - resident - unbacked; }
  // A growth that is admitted, and one that will not be served after all.
  void admit(Bytes bytes, bool is_wired) {
    (is_wired ? wired_unbacked : unbacked) += bytes;
    if (!is_wired) movable += bytes;
  }
  void withdraw(Bytes bytes, bool is_wired) {
    (is_wired ? wired_unbacked : unbacked) -= bytes;
    if (!is_wired) movable -= bytes;
  }
  Holding& operator+=(const Holding& other);
};

class Residency {
 public:
  std::optional<GpuSlot> slot_of(const GpuUuid& gpu) const;
  GpuSlot add_gpu(const GpuUuid& gpu, Bytes capacity);
  // One that leases name and the machine does not have: it has a slot, so that what is held there
  // is not forgotten, and nothing moves there. Until it is added.
  GpuSlot add_lost_gpu(const GpuUuid& gpu);
  bool is_lost(GpuSlot gpu) const { return gpus_[gpu.value].lost; }
  void set_capacity(GpuSlot gpu, Bytes capacity) { gpus_[gpu.value].capacity = capacity; }
  // Held on the GPU, inside the managed capacity, by nobody we know as a tenant.
  void set_outsiders(GpuSlot gpu, Bytes bytes) { gpus_[gpu.value].outsiders = bytes; }
  void set_host_budget(Bytes bytes) { host_budget_ = bytes; }
  void set_piece(Bytes bytes) { piece_ = bytes; }
  // All of it may be out at once, and nobody need leave room for it.
  void set_aside(LeaseId lease, bool aside) {
    aside ? void(aside_.insert(lease)) : void(aside_.erase(lease));
  }

  // From now on it has a row for every GPU, also for those that come later. All of them are empty.
  void add(TenantId tenant, LeaseId lease);
  // Of a tenant that was added. A claim that is more than can be (resident beyond movable) is cut.
  void take_over(TenantId tenant, GpuSlot gpu, const TenantMemory& said);
  void remove(TenantId tenant);
  // All it has on the GPUs will come back by itself; what it has in host RAM is gone.
  void mark_dead(TenantId tenant);
  // Of a tenant that was added: it has a row for every GPU.
  Holding& at(TenantId tenant, GpuSlot gpu);
  const Holding& at(TenantId tenant, GpuSlot gpu) const;
  // Of one that may be unknown. Nothing: it is.
  Maybe<Holding> find(TenantId tenant, GpuSlot gpu);
  Maybe<const Holding> find(TenantId tenant, GpuSlot gpu) const;

  std::size_t gpu_count() const { return gpus_.size(); }
  const GpuUuid& uuid(GpuSlot gpu) const { return gpus_[gpu.value].uuid; }
  Bytes capacity(GpuSlot gpu) const { return gpus_[gpu.value].capacity; }
  Bytes used(GpuSlot gpu) const;
  Bytes free(GpuSlot gpu) const { return capacity(gpu) - used(gpu); }
  // How much too little there is for everybody to be resident at once.
  Bytes deficit(GpuSlot gpu) const;
  Bytes wanted(GpuSlot gpu) const;  // for everybody to be resident at once
  // Memory that can never move: wired of everyone, admitted or there, and outsiders.
  Bytes wired(GpuSlot gpu) const;
  Holding of_lease(LeaseId lease, GpuSlot gpu) const;  // sums over its tenants
  bool shared(GpuSlot gpu) const;                      // two leases or more have a tenant there

  // The holdings of all leases that have anything on one GPU.
  std::map<LeaseId, Holding> by_lease(GpuSlot gpu) const;

  // Host memory that is a lease's for good, whatever it has of it.
  void set_oversize(LeaseId lease, Bytes bytes);
  Bytes oversize() const;  // of all
  Bytes host_budget() const { return host_budget_; }
  Bytes piece() const { return piece_; }

  struct Tenant {
    LeaseId lease;
    std::vector<Holding> gpus;  // by slot
  };
  const std::map<TenantId, Tenant>& tenants() const { return tenants_; }
  std::optional<LeaseId> lease_of(TenantId tenant) const;
  bool is_aside(LeaseId lease) const { return aside_.contains(lease); }

 private:
  struct Gpu {
    GpuUuid uuid;
    Bytes capacity;
    Bytes outsiders;
    bool lost = false;
  };

  std::vector<Gpu> gpus_;
  std::map<TenantId, Tenant> tenants_;
  std::set<LeaseId> aside_;
  std::map<LeaseId, Bytes> oversize_;
  Bytes host_budget_{UINT64_MAX};
  Bytes piece_ = mib(64);
};

}  // namespace gpurota::sched
