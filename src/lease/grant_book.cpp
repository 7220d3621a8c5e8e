#include "lease/grant_book.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

// The assumed cost of a context before one was measured: a little more than the 518 MiB of an H100
// with driver 580, the largest that was measured.
constexpr Bytes kUnseenContext = mib(600);

}  // namespace

template <class Visit>
void GrantBook::for_each_account(LeaseId lease, Visit visit) {
  ++changes_;
  for (auto it = accounts_.lower_bound(Key{lease, GpuUuid{}});
       it != accounts_.end() && it->first.first == lease; ++it) {
    visit(it->first.second, it->second);
  }
}

void GrantBook::collect(const GpuUuid& gpu, const GrantActions& actions,
                        AddressedGrantActions& into) {
  for (const GrantAction& action : actions) into.push_back({gpu, action});
}

Maybe<Account> GrantBook::account(TenantId tenant, const GpuUuid& gpu) {
  ++changes_;
  const auto lease = tenants_.find(tenant);
  if (lease == tenants_.end()) return {};
  const auto it = accounts_.find(Key{lease->second, gpu});
  return it == accounts_.end() ? Maybe<Account>() : Maybe(it->second);
}

void GrantBook::open(const Lease& lease) {
  ++changes_;
  for (const LeaseGpu& gpu : lease.gpus) {
    if (!gpu.limit || gpu.swap) continue;
    const auto it = accounts_.try_emplace(Key{lease.id, gpu.uuid}, *gpu.limit).first;
    it->second.set_limit(*gpu.limit, gpu.highest_limit);
    it->second.set_soft_limit(gpu.soft_limit);
    it->second.set_throttle(throttle_);
  }
}

void GrantBook::set_throttle(Duration throttle) {
  throttle_ = throttle;
  for (auto& [key, account] : accounts_) account.set_throttle(throttle);
}

AddressedGrantActions GrantBook::recall_excess(LeaseId lease) {
  AddressedGrantActions actions;
  for_each_account(lease, [&](const GpuUuid& gpu, Account& account) {
    collect(gpu, account.recall_excess(), actions);
  });
  return actions;
}

void GrantBook::close(LeaseId lease) {
  ++changes_;
  std::erase_if(accounts_, [&](const auto& entry) { return entry.first.first == lease; });
  std::erase_if(tenants_, [&](const auto& entry) { return entry.second == lease; });
  shared_.close(lease);
}

void GrantBook::add_tenant(TenantId tenant, LeaseId lease, const std::vector<HeldMemory>& held) {
  tenants_[tenant] = lease;
  for_each_account(lease, [&](const GpuUuid& gpu, Account& account) {
    const auto it =
        std::find_if(held.begin(), held.end(), [&](const HeldMemory& h) { return h.gpu == gpu; });
    const bool found = it != held.end();
    // A claim beyond the limit could only harm the claimant's own lease, but it must not distort
    // figures.
    account.add_tenant(tenant, found ? std::min(it->granted, account.most()) : Bytes(),
                       found ? it->contexts : 0, found ? it->overhead : std::nullopt,
                       context_cost(gpu));
  });
}

AddressedGrantActions GrantBook::disconnect(TenantId tenant, TimePoint now) {
  AddressedGrantActions actions;
  if (const auto lease = lease_of(tenant)) {
    for_each_account(*lease, [&](const GpuUuid& gpu, Account& account) {
      collect(gpu, account.disconnect(tenant, now), actions);
    });
  }
  return actions;
}

AddressedGrantActions GrantBook::mark_dead(TenantId tenant, TimePoint now) {
  AddressedGrantActions actions;
  if (const auto lease = lease_of(tenant)) {
    for_each_account(*lease, [&](const GpuUuid& gpu, Account& account) {
      collect(gpu, account.mark_dead(tenant, now), actions);
    });
  }
  return actions;
}

void GrantBook::forget(TenantId tenant) {
  if (const auto lease = lease_of(tenant)) {
    shared_.forget(tenant, *lease);
    for_each_account(*lease, [&](const GpuUuid& gpu, Account& account) {
      account.forget(tenant);
      tell_shared(tenant, {*lease, gpu});
    });
    tenants_.erase(tenant);
  }
}

void GrantBook::replace(TenantId old, TenantId by) {
  if (const auto lease = lease_of(old)) {
    shared_.forget(old, *lease);
    for_each_account(*lease, [&](const GpuUuid& gpu, Account& account) {
      account.replace(old, by);
      tell_shared(old, {*lease, gpu});
    });
    tenants_.erase(old);
  }
}

AddressedGrantActions GrantBook::grow(const GpuUuid& gpu, const GrowRequest& request,
                                      TimePoint now) {
  AddressedGrantActions actions;
  Account* const found = account(request.tenant, gpu).if_there();
  if (!found) {
    collect(gpu, {GrantReply{request.tenant, request.seq, GrantStatus::kRefused, {}, {}}}, actions);
    return actions;
  }
  GrowRequest sized = request;
  if (request.context) {
    const bool unseen = context_cost(gpu).is_zero();
    const Bytes reserve = context_reserve(gpu);
    sized.need = sized.want = unseen ? std::min(reserve, found->limit()) : reserve;
  }
  collect(gpu, found->grow(sized, now), actions);
  return actions;
}

AddressedGrantActions GrantBook::give_back(TenantId tenant, const GpuUuid& gpu, Bytes bytes,
                                           std::uint32_t recall, std::uint32_t grown_seq,
                                           TimePoint now) {
  AddressedGrantActions actions;
  if (Account* const found = account(tenant, gpu).if_there()) {
    collect(gpu, found->give_back(tenant, bytes, recall, grown_seq, now), actions);
  }
  return actions;
}

void GrantBook::set_contexts(TenantId tenant, const GpuUuid& gpu, int contexts, TimePoint now) {
  if (Account* const found = account(tenant, gpu).if_there())
    found->set_contexts(tenant, contexts, now);
}

void GrantBook::tell_shared(TenantId tenant, const SharedPlace& place, Bytes adopted) {
  const auto it = accounts_.find(place);
  if (it == accounts_.end()) return;
  ++changes_;
  it->second.set_shared(tenant,
                        {shared_.of_tenant(tenant, place), shared_.counted_again(place), adopted});
}

// The tenant itself claims what is shared. A claim that would exceed the tenant's grant is ignored,
// so that a false claim cannot make the account count less memory than is really held.
void GrantBook::hold_shared(TenantId tenant, const GpuUuid& gpu, MemoryKey key, Bytes bytes) {
  const auto lease = lease_of(tenant);
  if (!lease) return;
  const SharedPlace place{*lease, gpu};
  const Account* const account = find(*lease, gpu).if_there();
  const Bytes shared = shared_.of_tenant(tenant, place) + bytes;
  if (account && shared > account->holding(tenant).granted) return;
  if (shared_.hold(tenant, place, key, bytes)) tell_shared(tenant, place);
}

GrantBook::Joined GrantBook::join_shared(TenantId tenant, const GpuUuid& gpu, MemoryKey key) {
  const auto lease = lease_of(tenant);
  if (!lease) return {};
  const SharedPlace place{*lease, gpu};
  const auto here = shared_.find(place, key);
  if (!here || !shared_.hold(tenant, place, key, *here)) {
    return {false, shared_.size_of(gpu, key).value_or(Bytes())};
  }
  tell_shared(tenant, place, *here);
  return {true, *here};
}

AddressedGrantActions GrantBook::end_shared(TenantId tenant, const GpuUuid& gpu,
                                            const EndOfShared& end, TimePoint now) {
  AddressedGrantActions actions;
  const auto lease = lease_of(tenant);
  if (!lease) return actions;
  const SharedPlace place{*lease, gpu};
  if (shared_.drop(tenant, place, end.key)) tell_shared(tenant, place);
  if (Account* const found = account(tenant, gpu).if_there()) {
    collect(gpu, found->give_back(tenant, end.returned, 0, 0, now), actions);
    collect(gpu, found->recall_excess(), actions);
  }
  return actions;
}

AddressedGrantActions GrantBook::measure(LeaseId lease, const GpuUuid& gpu,
                                         const std::vector<TenantMeasurement>& tenants,
                                         Bytes outsiders, TimePoint now) {
  AddressedGrantActions actions;
  ++changes_;
  const auto it = accounts_.find(Key{lease, gpu});
  if (it == accounts_.end()) return actions;
  for (const TenantMeasurement& entry : tenants) {
    if (const auto cost = it->second.measure(entry.tenant, entry.measurement)) {
      learn_context_cost(gpu, *cost);
    }
  }
  for (const TenantMeasurement& entry : tenants) {
    if (it->second.counts(entry.tenant)) continue;
    shared_.forget(entry.tenant, {lease, gpu});
    tell_shared(entry.tenant, {lease, gpu});
  }
  it->second.set_outsiders(outsiders);
  collect(gpu, it->second.serve(now), actions);
  return actions;
}

std::vector<HeldMemory> GrantBook::held_by(TenantId tenant) const {
  std::vector<HeldMemory> held;
  const auto lease = lease_of(tenant);
  if (!lease) return held;
  for (auto it = accounts_.lower_bound({*lease, GpuUuid()});
       it != accounts_.end() && it->first.first == *lease; ++it) {
    const Account::Holding here = it->second.holding(tenant);
    held.push_back({it->first.second, here.granted, here.contexts, here.overhead, here.settled});
  }
  return held;
}

void GrantBook::release_hold(LeaseId lease, const GpuUuid& gpu) {
  const auto it = accounts_.find({lease, gpu});
  if (it != accounts_.end()) it->second.hold_until(TimePoint());
}

void GrantBook::hold_until(LeaseId lease, TimePoint when) {
  for_each_account(lease, [&](const GpuUuid&, Account& account) { account.hold_until(when); });
}

AddressedGrantActions GrantBook::serve(TimePoint now) {
  AddressedGrantActions actions;
  for (auto& [key, account] : accounts_) collect(key.second, account.serve(now), actions);
  if (!actions.empty()) ++changes_;
  return actions;
}

std::optional<TimePoint> GrantBook::next_deadline() const {
  std::optional<TimePoint> first;
  for (const auto& [key, account] : accounts_) {
    const auto when = account.next_deadline();
    if (when && (!first || *when < *first)) first = when;
  }
  return first;
}

Bytes GrantBook::context_cost(const GpuUuid& gpu) const {
  const auto it = context_costs_.find(gpu);
  return it == context_costs_.end() ? Bytes() : it->second;
}

Bytes GrantBook::context_reserve(const GpuUuid& gpu) const {
  const Bytes known = context_cost(gpu);
  return known.is_zero() ? kUnseenContext : known;
}

void GrantBook::learn_context_cost(const GpuUuid& gpu, Bytes cost) {
  Bytes& known = context_costs_[gpu];
  known = known.is_zero() ? cost : std::min(known, cost);
}

Maybe<const Account> GrantBook::find(LeaseId lease, const GpuUuid& gpu) const {
  const auto it = accounts_.find(Key{lease, gpu});
  return it == accounts_.end() ? Maybe<const Account>() : Maybe(it->second);
}

std::optional<LeaseId> GrantBook::lease_of(TenantId tenant) const {
  const auto it = tenants_.find(tenant);
  return it == tenants_.end() ? std::nullopt : std::optional(it->second);
}

bool GrantBook::counts(TenantId tenant) const {
  return std::any_of(accounts_.begin(), accounts_.end(),
                     [&](const auto& entry) { return entry.second.counts(tenant); });
}

bool GrantBook::has_dead(LeaseId lease) const {
  for (const auto& [key, account] : accounts_) {
    if (key.first == lease && account.has_dead()) return true;
  }
  return false;
}

bool GrantBook::expects_measurement(const GpuUuid& gpu) const {
  return std::any_of(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    return entry.first.second == gpu && entry.second.expects_measurement();
  });
}

}  // namespace gpurota::lease
