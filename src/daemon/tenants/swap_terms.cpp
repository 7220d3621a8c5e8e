#include "daemon/tenants/swap_terms.h"

#include "daemon/tenants/tenant_messages.h"
#include "sched/host_needs.h"

#include <algorithm>
#include <tuple>

namespace gpurota::daemon {
namespace {

// The amount that a tenant may keep is sent in steps of this size, so that not every allocation of
// other tenants changes it.
constexpr Bytes kKeptStep = mib(256);
constexpr Bytes kLeastKept = mib(32);

Bytes in_steps(Bytes bytes) { return Bytes(bytes.count() - bytes.count() % kKeptStep.count()); }

}  // namespace

SwapTerms::SwapTerms(Parts parts, const SwapTenantMap& tenants, TimePoint now) : parts_(parts) {
  for (const auto& [id, tenant] : tenants) {
    if (!tenant->here || !tenant->connected) continue;
    connected_.push_back(tenant.get());
    if (++of_lease_[tenant->lease] > 1) continue;
    const auto turn = parts_.turns.turns().explain(tenant->lease, now);
    takes_turns_[tenant->lease] = turn && turn->takes_turns;
  }
  keeps_ = what_tenants_may_keep();
  likely_ = likely_to_move();
  pins_ = what_tenants_may_pin();
}

// Host memory that a tenant may keep while none of its memory is evicted: its part of the memory
// reserved for its lease, and of the unreserved memory. Such memory is a cache: no request is ever
// refused because of it.
std::map<LeaseId, Bytes> SwapTerms::what_tenants_may_keep() const {
  const sched::Residency& residency = parts_.turns.turns().residency();
  std::map<LeaseId, Bytes> reserved = sched::HostNeeds(residency).reserved_by_lease();
  Bytes spare = parts_.turns.host_budget() - residency.oversize();
  for (const auto& [lease, bytes] : reserved) spare -= bytes;
  std::map<LeaseId, Bytes> keeps;
  for (const auto& [lease, count] : of_lease_) {
    const std::uint64_t bytes = reserved[lease].count() / count + spare.count() / connected_.size();
    keeps[lease] = std::max(in_steps(Bytes(bytes)), kLeastKept);
  }
  return keeps;
}

bool SwapTerms::moves_before_long(const SwapTenant& tenant) const {
  return tenant.makes_way || takes_turns_.at(tenant.lease);
}

// All movable memory of a filler counts, because a filler is evicted for any other lease.
std::map<TenantId, Bytes> SwapTerms::likely_to_move() const {
  const sched::Residency& residency = parts_.turns.turns().residency();
  const sched::LikelyToMove in_turns(residency);
  std::map<TenantId, Bytes> likely;
  for (const SwapTenant* tenant : connected_) {
    Bytes& bytes = likely[tenant->id];
    const auto at = residency.tenants().find(tenant->id);
    if (at == residency.tenants().end()) continue;
    if (tenant->makes_way) {
      for (const sched::Holding& held : at->second.gpus) bytes += held.movable;
    } else {
      const bool was_pinned = tenant->terms && tenant->terms->takes_turns != GPUROTA_TURNS_NONE;
      bytes = in_turns.of(tenant->id, was_pinned);
    }
  }
  return likely;
}

// For each tenant the part that is likely to move, in whole steps.
std::vector<Bytes> SwapTerms::needs_to_pin(const std::vector<const SwapTenant*>& tenants) const {
  std::vector<Bytes> needs(tenants.size());
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const Bytes likely = likely_.at(tenants[i]->id);
    if (!likely.is_zero()) needs[i] = in_steps(likely + kKeptStep);
  }
  return needs;
}

// First divides the limit of each user among the user's tenants, then the budget of the site among
// all tenants.
std::map<TenantId, Bytes> SwapTerms::what_tenants_may_pin() const {
  std::map<uid_t, std::vector<const SwapTenant*>> by_user;
  for (const SwapTenant* tenant : connected_) by_user[tenant->uid].push_back(tenant);
  std::vector<const SwapTenant*> tenants;
  std::vector<Bytes> needs, of_limits;
  for (const auto& [uid, theirs] : by_user) {
    const Bytes limit = parts_.users.limits_of(uid).pinned.value_or(UserLimits::kUnlimitedBytes);
    const std::vector<Bytes> wanted = needs_to_pin(theirs);
    const std::vector<Bytes> allowed =
        sched::divide_by_need(limit - parts_.turns.oversize_of(uid), wanted);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      tenants.push_back(theirs[i]);
      of_limits.push_back(allowed[i]);
      needs.push_back(std::min(wanted[i], allowed[i]));
    }
  }
  const Bytes whole = parts_.turns.pinned_budget() - parts_.turns.turns().residency().oversize();
  const std::vector<Bytes> parts = sched::divide_by_need(whole, needs);
  const bool moving = std::any_of(tenants.begin(), tenants.end(),
                                  [](const SwapTenant* tenant) { return tenant->moves(); });
  std::map<TenantId, Bytes> pins;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const auto& told = tenants[i]->terms;
    pins[tenants[i]->id] =
        moving && told ? Bytes(told->pinned_bytes) : std::min(parts[i], of_limits[i]);
  }
  return pins;
}

gpurota_msg_swap_terms SwapTerms::of(const SwapTenant& tenant) const {
  Bytes limits;
  for (const SwapMemory& memory : tenant.memory) limits += memory.most;
  auto terms = make_message<gpurota_msg_swap_terms>(GPUROTA_MSG_SWAP_TERMS, 0);
  // No lease may evict to the host memory of oversize leases, not even those leases themselves.
  const Bytes oversize = parts_.turns.turns().residency().oversize();
  const Bytes host = std::min(parts_.turns.host_budget() - oversize, limits);
  terms.host_bytes = host.count();
  terms.pinned_bytes = std::min(host, pins_.at(tenant.id)).count();
  terms.kept_bytes = keeps_.at(tenant.lease).count();
  terms.copy_all = parts_.config.turns.clean_blocks ? 0 : 1;
  terms.takes_turns = moves_before_long(tenant)          ? GPUROTA_TURNS_TAKEN
                      : !likely_.at(tenant.id).is_zero() ? GPUROTA_TURNS_LIKELY
                                                         : GPUROTA_TURNS_NONE;
  return terms;
}

bool is_same(const gpurota_msg_swap_terms& a, const gpurota_msg_swap_terms& b) {
  const auto said = [](const gpurota_msg_swap_terms& t) {
    return std::tie(t.host_bytes, t.pinned_bytes, t.kept_bytes, t.copy_all, t.takes_turns);
  };
  return said(a) == said(b);
}

}  // namespace gpurota::daemon
