// The ledger behind turns: how much memory each lease has where. Pure.
//
// For each GPU, used = outsiders + resident + coming + wired + beside + lingering of all tenants,
// except tenants of parked leases. ResidencyRules checks whether tenants may grow; HostNeeds
// computes the host memory that evictions need. Used by Turns only.
#pragma once

#include "base/maybe.h"
#include "sched/model.h"

#include <map>
#include <set>
#include <vector>

namespace gpurota::sched {

// Index of a GPU in the list of managed GPUs. Not a PCI index.
using GpuSlot = Id<struct GpuSlotTag, std::uint32_t>;

struct Holding {
  Bytes movable;
  Bytes resident;  // of movable
  Bytes coming;    // a restore is ordered, but not reported yet
  Bytes leaving;   // of resident: an eviction is ordered, but not reported yet
  Bytes wired;
  // Growth that is admitted, but has no room yet.
  Bytes unbacked;        // of movable
  Bytes wired_unbacked;  // beside wired
  Bytes lingering;       // free soon: memory of a dead process, or a doubted eviction
  Bytes beside;          // wired, but not reported by the tenant
  Bytes hosted{};        // in host memory for good; not part of anything above

  Bytes missing() const { return movable - resident - coming - unbacked; }
  Bytes out() const { return movable - resident - unbacked; }
  // admit() adds an admitted growth; withdraw() takes back one that will not be served.
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
  // Adds a GPU that leases name but the machine does not have. Memory on a lost GPU stays counted,
  // and nothing moves there, until add_gpu() adds it.
  GpuSlot add_lost_gpu(const GpuUuid& gpu);
  bool is_lost(GpuSlot gpu) const { return gpus_[gpu.value].lost; }
  void set_capacity(GpuSlot gpu, Bytes capacity) { gpus_[gpu.value].capacity = capacity; }
  // Memory inside the managed capacity that is held by processes not known as tenants.
  void set_outsiders(GpuSlot gpu, Bytes bytes) { gpus_[gpu.value].outsiders = bytes; }
  void set_host_budget(Bytes bytes) { host_budget_ = bytes; }
  void set_piece(Bytes bytes) { piece_ = bytes; }
  // All memory of a lease that is put aside may be evicted at the same time, and no room on the GPU
  // is kept for it.
  void set_aside(LeaseId lease, bool aside) {
    aside ? void(aside_.insert(lease)) : void(aside_.erase(lease));
  }
  // The processes of a parked lease have nothing on a GPU, not even what cannot be moved. The
  // lease's memory stays in the books, and counts again when the lease is no longer parked.
  void set_parked(LeaseId lease, bool parked) {
    parked ? void(parked_.insert(lease)) : void(parked_.erase(lease));
  }

  // Gives the tenant an empty holding on each GPU, even on GPUs that are added later.
  void add(TenantId tenant, LeaseId lease);
  // Sets a holding of an added tenant as reported. An impossible claim (resident beyond movable) is
  // cut.
  void take_over(TenantId tenant, GpuSlot gpu, const TenantMemory& said);
  void remove(TenantId tenant);
  // All GPU memory of a dead tenant is lingering: the driver will free it. The host memory of a
  // dead tenant is gone.
  void mark_dead(TenantId tenant);
  // The tenant must have been added.
  Holding& at(TenantId tenant, GpuSlot gpu);
  const Holding& at(TenantId tenant, GpuSlot gpu) const;
  // Nothing: the tenant is unknown.
  Maybe<Holding> find(TenantId tenant, GpuSlot gpu);
  Maybe<const Holding> find(TenantId tenant, GpuSlot gpu) const;

  std::size_t gpu_count() const { return gpus_.size(); }
  const GpuUuid& uuid(GpuSlot gpu) const { return gpus_[gpu.value].uuid; }
  Bytes capacity(GpuSlot gpu) const { return gpus_[gpu.value].capacity; }
  Bytes used(GpuSlot gpu) const;
  // By how much the capacity is too small for all memory of the leases to be resident at the same
  // time.
  Bytes deficit(GpuSlot gpu) const;
  Bytes wanted(GpuSlot gpu) const;  // for all to be resident at the same time
  // Memory that can never move: the memory of outsiders, and all wired memory of tenants. Wired
  // growth that is admitted but has no room yet counts, too.
  Bytes wired(GpuSlot gpu) const;
  Holding of_lease(LeaseId lease, GpuSlot gpu) const;  // sums over its tenants

  // The holdings of all leases that have anything on one GPU.
  std::map<LeaseId, Holding> by_lease(GpuSlot gpu) const;

  // Host memory that is reserved for the lease's oversize part, used or not.
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
  bool is_parked(LeaseId lease) const { return parked_.contains(lease); }

 private:
  struct Gpu {
    GpuUuid uuid;
    Bytes capacity;
    Bytes outsiders;
    bool lost = false;
  };

  std::vector<Gpu> gpus_;
  std::map<TenantId, Tenant> tenants_;
  std::set<LeaseId> aside_, parked_;
  std::map<LeaseId, Bytes> oversize_;
  Bytes host_budget_{UINT64_MAX};
  Bytes piece_ = mib(64);
};

// Whether two leases or more have a tenant there.
inline bool is_shared(const Residency& memory, GpuSlot gpu) {
  return memory.by_lease(gpu).size() > 1;
}
inline Bytes free_on(const Residency& memory, GpuSlot gpu) {
  return memory.capacity(gpu) - memory.used(gpu);
}

}  // namespace gpurota::sched
