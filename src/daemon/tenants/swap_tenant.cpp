#include "daemon/tenants/swap_tenant.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// The largest block that a library moves at a time.
constexpr Bytes kLargestBlock = mib(64);

}  // namespace

bool SwapTenant::moves() const {
  return std::any_of(memory.begin(), memory.end(), [](const SwapMemory& m) {
    return !m.ordered[0].is_zero() || !m.ordered[1].is_zero();
  });
}

void SwapMemory::take_terms(const LeaseGpu& share) {
  limit = share.limit.value_or(Bytes());
  soft_limit = share.soft_limit;
  oversize = share.oversize;
  most = std::max(limit, share.highest_limit);
}

// Only whole blocks move, and a tenant carries out orders one by one or together. So the tenant may
// exceed each open order by up to one block, and the last order before them by one block, too.
void SwapMemory::allow(std::uint32_t direction, Bytes bytes) {
  if (ordered[direction].is_zero()) {
    excess[direction] = Bytes();
    slack[direction] = kLargestBlock;
  }
  slack[direction] += kLargestBlock;
  ordered[direction] += bytes;
}

}  // namespace gpurota::daemon
