// Which memory several processes of a lease share: each process is charged for the memory, but the
// lease only once. Pure.
//
// Shared memory is identified by a key, which libgpurota chooses in the process that exports it.
// Part of GrantBook; state thread only.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/gpu.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace gpurota::lease {

using MemoryKey = std::uint64_t;

// A lease on one of its GPUs.
using SharedPlace = std::pair<LeaseId, GpuUuid>;

class SharedBook {
 public:
  // At most this many pieces of shared memory are recorded for a tenant. Any further pieces are
  // charged to the tenant in full.
  static constexpr std::size_t kMostOfTenant = 4096;

  // Adds one charge of the tenant for this memory. False: it is not recorded, because the tenant
  // has too many, or the lease has this memory with another size.
  bool hold(TenantId tenant, const SharedPlace& place, MemoryKey key, Bytes bytes);
  // Removes one charge. False: there is none.
  bool drop(TenantId tenant, const SharedPlace& place, MemoryKey key);
  // Removes all charges of the tenant there.
  void forget(TenantId tenant, const SharedPlace& place);
  void forget(TenantId tenant, LeaseId lease);  // on all GPUs
  void close(LeaseId lease);

  // The memory's size, if a process of the lease has it.
  std::optional<Bytes> find(const SharedPlace& place, MemoryKey key) const;
  // The memory's size, if a process of any lease has it; if leases differ, the largest.
  std::optional<Bytes> size_of(const GpuUuid& gpu, MemoryKey key) const;
  // The part of the leases' charges on the GPU that counts memory more than once.
  Bytes counted_by_several(const GpuUuid& gpu) const;
  // The part of the tenant's charges that is shared memory.
  Bytes of_tenant(TenantId tenant, const SharedPlace& place) const;
  // The part of the lease's charges that counts memory more than once.
  Bytes counted_again(const SharedPlace& place) const;

 private:
  struct Memory {
    Bytes bytes;
    std::map<TenantId, int> holders;  // the number of charges of each
    int charges = 0;
  };
  struct Shared {
    std::map<MemoryKey, Memory> memory;
    std::map<TenantId, Bytes> of_tenant;
    std::map<TenantId, std::size_t> charges_of;
    Bytes counted_again;
  };
  using Places = std::map<SharedPlace, Shared>;

  void end_one(Shared& shared, std::map<MemoryKey, Memory>::iterator memory, TenantId tenant);

  Places places_;
};

}  // namespace gpurota::lease
