// How much host memory is needed if all memory that may be evicted is evicted at the same time.
// Computed from a Residency; holds no state.
#pragma once

#include "sched/residency.h"

#include <map>
#include <vector>

namespace gpurota::sched {

class HostNeeds {
 public:
  explicit HostNeeds(const Residency& memory) : memory_(memory) {}

  // The host memory to keep for all that could be evicted at the same time. For each lease this is
  // its movable memory, but at most the GPU's deficit plus two pieces. For a lease that is put
  // aside it is all its movable memory. Memory beyond this bound counts only if it is evicted or
  // being evicted already, for example because the deficit was larger before.
  Bytes reserved() const;
  std::map<LeaseId, Bytes> reserved_by_lease() const;  // the same, by lease
  Bytes out_now() const;
  // How much more eviction may be ordered until host memory is full. The caller leaves room for a
  // block, because an eviction may move up to a block more than was ordered.
  Bytes left_for_moves() const;
  Bytes left() const;  // the part of the budget that is not reserved

 private:
  void add_reserved(GpuSlot gpu, std::map<LeaseId, Bytes>* sums) const;

  const Residency& memory_;
};

// The part of tenants' memory that may have to move soon, so that it is worth pinning host memory
// for it now. Zero on a GPU that is lost, that only one lease uses, or whose leases want at most 80
// % of its capacity together (70 % for a tenant that has pinned already). Otherwise the deficit and
// a fifth of the capacity, but at most the tenant's movable memory there. Uses the deficits at the
// time of construction.
class LikelyToMove {
 public:
  explicit LikelyToMove(const Residency& memory);
  // The sum over all GPUs. The tenant must have been added.
  Bytes of(TenantId tenant, bool was_pinned) const;

 private:
  struct Gpu {
    Bytes most;            // that may have to move for one tenant
    bool starts = false;   // for a tenant that has pinned nothing
    bool goes_on = false;  // for a tenant that has pinned already
  };

  const Residency& memory_;
  std::vector<Gpu> gpus_;  // by slot
};

// Divides `whole` max-min fairly into one part for each of `needs`, in the same order. An even part
// is `whole` divided by the number of needs. A need of at most an even part is met in full, and a
// larger need gets at least an even part. The rest that small needs leave is divided evenly among
// the larger needs. If `whole` exceeds all needs together, the excess is divided evenly over all
// parts. The parts add up to `whole`, less at most a byte for each part (rounding).
std::vector<Bytes> divide_by_need(Bytes whole, const std::vector<Bytes>& needs);

}  // namespace gpurota::sched
