// The host memory that is needed for all that leases could have out at once. Computed from a
// Residency; keeps nothing.
#pragma once

#include "sched/residency.h"

#include <map>
#include <vector>

namespace gpurota::sched {

class HostNeeds {
 public:
  explicit HostNeeds(const Residency& memory) : memory_(memory) {}

  // The host memory to keep for all that could be out at once: no lease has more out than the
  // deficit, or than it has at all, except memory that is out, or on its way, since the deficit was
  // larger.
  Bytes reserved() const;
  std::map<LeaseId, Bytes> reserved_by_lease() const;  // its parts
  Bytes out_now() const;
  // How much more may be ordered out until host memory is full. An eviction may move up to a block
  // more.
  Bytes left_for_moves() const;
  Bytes left() const;  // of the budget, that is reserved for nothing

 private:
  void add_reserved(GpuSlot gpu, std::map<LeaseId, Bytes>* sums) const;

  const Residency& memory_;
};

// The part of tenants' memory that may have to move before long, so that host memory for it is
// worth pinning now. Nothing on a GPU that one lease has alone, or whose leases hold at most 80 %
// of its capacity together (70 % for a tenant that has pinned already); else what would have to
// move if the leases wanted a fifth of the capacity more. Of the ledger as it was when this was
// made.
class LikelyToMove {
 public:
  explicit LikelyToMove(const Residency& memory);
  // On all GPUs, of a tenant that was added.
  Bytes of(TenantId tenant, bool was_pinned) const;

 private:
  struct Gpu {
    Bytes most;            // of one tenant
    bool starts = false;   // for a tenant that has pinned nothing
    bool goes_on = false;  // for one that has
  };

  const Residency& memory_;
  std::vector<Gpu> gpus_;  // by slot
};

// The parts of `whole`, one for each of `needs` in their order. Nobody gets less than an even part,
// or than they need: those who need more get the rest of the others' parts, evenly. A rest that
// nobody needs is divided evenly over all. The parts add up to `whole`, less than a byte for each.
std::vector<Bytes> divide_by_need(Bytes whole, const std::vector<Bytes>& needs);

}  // namespace gpurota::sched
