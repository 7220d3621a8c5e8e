#include "daemon/tenants/swap_claims.h"

#include "base/log.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// The kernel's figure for the memory of a process may lag behind, by some memory for each CPU.
constexpr Bytes kCountedLate = mib(512);

bool says_anything(const gpurota_msg_swap_here& said, std::size_t slots) {
  bool any = said.gate_open != 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const gpurota_swap_memory& memory = said.memory[slot];
    any =
        any || memory.movable_bytes != 0 || memory.wired_bytes != 0 || said.hosted_bytes[slot] != 0;
  }
  return any;
}

}  // namespace

// Bounds a claim: all tenants of the lease together have at most the limit of the lease, or the
// limit before it was lowered. A lower limit bounds only later allocations, because evicted memory
// must be able to come back. Of the limit, movable memory gets its part first and wired memory the
// rest: a tenant claims for its contexts the size that it was once told. If this size is too large,
// the excess must not displace evicted memory.
sched::TenantMemory SwapClaims::bounded_by_limit(const SwapTenant& tenant, std::size_t slot,
                                                 const gpurota_msg_swap_here& said,
                                                 const SwapTenant* before) const {
  const SwapMemory& memory = tenant.memory[slot];
  sched::Holding others = turns_.holding(tenant.lease, memory.gpu);
  if (before) {
    if (const sched::Holding* was = measures_.holding(*before, memory).if_there()) {
      others.movable -= was->movable;
      others.wired -= was->wired;
      others.hosted -= was->hosted;
    }
  }
  const Bytes left = memory.most - others.movable - others.wired;
  const Bytes movable = std::min(Bytes(said.memory[slot].movable_bytes), left);
  const Bytes wired = std::min(Bytes(said.memory[slot].wired_bytes), left - movable);
  const Bytes resident = std::min(Bytes(said.memory[slot].resident_bytes), movable);
  const Bytes hosted = std::min(Bytes(said.hosted_bytes[slot]), memory.oversize - others.hosted);
  return {memory.gpu, movable, resident, wired, hosted, {}};
}

Bytes SwapClaims::known_movable(const SwapTenant& before, std::size_t slot) const {
  const sched::Holding* was = measures_.holding(before, before.memory[slot]).if_there();
  return was ? was->movable - was->unbacked : Bytes();
}

Result<sched::AddTenant> SwapClaims::believe(SwapTenant& tenant, const gpurota_msg_swap_here& said,
                                             const SwapTenant* before, TimePoint now) const {
  sched::AddTenant event;
  event.tenant = tenant.id;
  event.lease = tenant.lease;
  if (before) event.replaces = before->id;
  const bool may_have_been = before || turns_.may_have_known(tenant.lease, tenant.process);
  if (!may_have_been && says_anything(said, tenant.memory.size())) {
    log::warn("a process says that it has memory of a swap lease, and was never given any",
              {{"pid", tenant.pid()}, {"lease", to_string(tenant.lease)}});
  }
  event.gate_open = may_have_been && said.gate_open != 0;
  std::optional<Bytes> host;  // the process's host memory; read only if it is needed
  for (std::size_t slot = 0; slot < tenant.memory.size(); ++slot) {
    SwapMemory& memory = tenant.memory[slot];
    sched::TenantMemory believed{memory.gpu, {}, {}, {}};
    if (may_have_been) believed = bounded_by_limit(tenant, slot, said, before);
    Bytes known = believed.resident;
    if (before) {
      const SwapMemory& was = before->memory[slot];
      known = known_movable(*before, slot);
      believed.movable = std::min(believed.movable, known + was.freed_out);
      believed.wired = std::min(believed.wired, was.wired_granted);
      memory.freed_out = was.freed_out;
      memory.shown = was.shown;
    }
    if (believed.movable > known) {
      if (!host) {
        GPUROTA_ASSIGN_OR_RETURN(const Bytes private_memory,
                                 processes_.private_memory(tenant.pid()));
        host = private_memory + kCountedLate;
      }
      const Bytes more = std::min(believed.movable - known, *host);
      *host -= more;
      memory.freed_out -= more;
      believed.movable = known + more;
    }
    believed.resident = std::min(believed.resident, believed.movable);
    if (measures_.doubts(tenant.uid, now)) {
      believed.lingering =
          measures_.seen_before(tenant, before, memory) - believed.resident - believed.wired;
    }
    memory.wired_granted = believed.wired;
    memory.unproven = !before && !(believed.resident + believed.wired).is_zero();
    event.memory.push_back(std::move(believed));
  }
  return event;
}

}  // namespace gpurota::daemon
