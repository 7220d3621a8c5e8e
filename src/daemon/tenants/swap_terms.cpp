#include "daemon/tenants/swap_terms.h"

#include "daemon/tenants/tenant_messages.h"
#include "sched/host_needs.h"

#include <algorithm>
#include <tuple>

namespace gpurota::daemon {
namespace {

// What a tenant may keep is told in such steps, so that not every allocation of anybody's changes
// it.
constexpr Bytes kKeptStep = mib(256);
constexpr Bytes kLeastKept = mib(32);

Bytes share(Bytes whole, int parts) {
  return Bytes(whole.count() / static_cast<std::uint64_t>(parts));
}

}  // namespace

SwapTerms::SwapTerms(Parts parts, const SwapTenantMap& tenants) : parts_(parts) {
  for (const auto& [id, tenant] : tenants) {
    if (!tenant->here || !tenant->connected) continue;
    ++connected_;
    ++of_user_[tenant->uid];
    ++of_lease_[tenant->lease];
  }
  keeps_ = what_tenants_may_keep();
}

// While nothing of it is out: its part of what is reserved for its lease, and of what is reserved
// for nobody. It is a cache: nobody is refused anything for it.
std::map<LeaseId, Bytes> SwapTerms::what_tenants_may_keep() const {
  const sched::Residency& residency = parts_.turns.turns().residency();
  std::map<LeaseId, Bytes> reserved = sched::HostNeeds(residency).reserved_by_lease();
  Bytes spare = parts_.turns.host_budget() - residency.oversize();
  for (const auto& [lease, bytes] : reserved) spare -= bytes;
  std::map<LeaseId, Bytes> keeps;
  for (const auto& [lease, count] : of_lease_) {
    const std::uint64_t bytes =
        reserved[lease].count() / count + spare.count() / static_cast<std::uint64_t>(connected_);
    keeps[lease] = std::max(Bytes(bytes - bytes % kKeptStep.count()), kLeastKept);
  }
  return keeps;
}

gpurota_msg_swap_terms SwapTerms::of(const SwapTenant& tenant, TimePoint now) const {
  Bytes limits;
  for (const SwapMemory& memory : tenant.memory) limits += memory.most;
  const Bytes user =
      parts_.users.limits_of(tenant.uid).pinned.value_or(UserLimits::kUnlimitedBytes);
  auto terms = make_message<gpurota_msg_swap_terms>(GPUROTA_MSG_SWAP_TERMS, 0);
  // What oversize leases have is neither theirs to evict to, nor others'.
  const Bytes oversize = parts_.turns.turns().residency().oversize();
  const Bytes host = std::min(parts_.turns.host_budget() - oversize, limits);
  terms.host_bytes = host.count();
  terms.pinned_bytes =
      std::min({host, share(parts_.turns.pinned_budget() - oversize, connected_),
                share(user - parts_.turns.oversize_of(tenant.uid), of_user_.at(tenant.uid))})
          .count();
  terms.kept_bytes = keeps_.at(tenant.lease).count();
  terms.copy_all = parts_.config.turns.clean_blocks ? 0 : 1;
  const auto turn = parts_.turns.turns().explain(tenant.lease, now);
  terms.takes_turns = tenant.makes_way || (turn && turn->takes_turns) ? 1 : 0;
  return terms;
}

bool is_same(const gpurota_msg_swap_terms& a, const gpurota_msg_swap_terms& b) {
  const auto said = [](const gpurota_msg_swap_terms& t) {
    return std::tie(t.host_bytes, t.pinned_bytes, t.kept_bytes, t.copy_all, t.takes_turns);
  };
  return said(a) == said(b);
}

}  // namespace gpurota::daemon
