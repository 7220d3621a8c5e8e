#include "lease/account.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

// If a grant of all that a tenant wants would leave less than this, the tenant gets only what it
// needs, because the rest of the grant would soon have to be recalled.
constexpr Bytes kPlenty = mib(512);

}  // namespace

Maybe<AccountHolder> Account::find(TenantId tenant) {
  const auto it = holders_.find(tenant);
  return it == holders_.end() ? Maybe<AccountHolder>() : Maybe(it->second);
}

void Account::add_tenant(TenantId tenant, Bytes held, int contexts, std::optional<Bytes> overhead,
                         Bytes least) {
  AccountHolder& holder = holders_[tenant];
  holder.granted = held;
  holder.contexts = contexts;
  holder.context_cost_known = holder.is_busy = contexts > 0;
  if (contexts > 0) holder.overhead = std::min(least, most_);
  if (!overhead) return;
  holder.overhead = std::min(*overhead, most_);
  holder.unmeasured = false;
}

void Account::replace(TenantId old, TenantId by) {
  const AccountHolder* was = find(old).if_there();
  AccountHolder* is = find(by).if_there();
  if (was && is) {
    is->overhead = was->overhead;
    is->context_reserve = was->context_reserve;
    is->reserved_since = was->reserved_since;
    is->window = was->window;
    is->unmeasured = was->unmeasured || was->contexts != is->contexts;
    is->context_cost_known = was->context_cost_known;
  }
  holders_.erase(old);
}

GrantActions Account::disconnect(TenantId tenant, TimePoint now) {
  if (AccountHolder* holder = find(tenant).if_there()) holder->connected = false;
  std::erase_if(waiting_, [&](const Waiting& w) { return w.request.tenant == tenant; });
  awaited_.erase(tenant);
  return serve(now);
}

GrantActions Account::mark_dead(TenantId tenant, TimePoint now) {
  if (AccountHolder* holder = find(tenant).if_there()) {
    holder->dead = true;
    // A process without contexts and charges has no memory to free, so no measurement is needed.
    if (holder->contexts == 0 && holder->charge().is_zero()) {
      holders_.erase(tenant);
    }
  }
  return disconnect(tenant, now);
}

GrantActions Account::grow(const GrowRequest& request, TimePoint now) {
  AccountHolder* holder = find(request.tenant).if_there();
  if (!holder) return {GrantReply{request.tenant, request.seq, GrantStatus::kRefused, {}, {}}};
  holder->give_back(request.returned);
  waiting_.push_back(Waiting{request, now, std::nullopt});
  return serve(now);
}

GrantActions Account::give_back(TenantId tenant, Bytes bytes, std::uint32_t recall,
                                std::uint32_t grown_seq, TimePoint now) {
  AccountHolder* holder = find(tenant).if_there();
  if (!holder) return {};
  holder->give_back(bytes);
  GrantActions actions;
  if (recall != 0 && recall == round_ && awaited_.contains(tenant)) {
    if (holder->last_grown != 0 && grown_seq != holder->last_grown) {
      actions.push_back(GrantRecall{tenant, round_});  // a grant was on its way: ask again
    } else {
      awaited_.erase(tenant);
    }
    round_brought_ = round_brought_ || !bytes.is_zero();
  }
  GrantActions served = serve(now);
  actions.insert(actions.end(), served.begin(), served.end());
  return actions;
}

void Account::set_contexts(TenantId tenant, int contexts, TimePoint now) {
  AccountHolder* holder = find(tenant).if_there();
  if (!holder) return;
  holder->contexts = contexts;
  holder->reserved_since = now;
  holder->unmeasured = true;
  if (contexts == 0) holder->context_reserve = Bytes();
}

void Account::set_shared(TenantId tenant, const SharedNow& now) {
  if (AccountHolder* holder = find(tenant).if_there()) {
    holder->granted += now.adopted;
    holder->set_shared(now.of_tenant);
  }
  counted_again_ = now.counted_again;
}

std::optional<Bytes> Account::measure(TenantId tenant, const Measurement& measurement) {
  AccountHolder* holder = find(tenant).if_there();
  if (!holder) return std::nullopt;
  if (!holder->dead) return holder->measure(measurement);
  if (measurement.listed) {
    holder->measure_dead(measurement);
  } else {
    holders_.erase(tenant);
  }
  return std::nullopt;
}

bool Account::answer(Waiting& waiting, TimePoint now, GrantActions& actions) {
  const GrowRequest& request = waiting.request;
  if (request.need <= available()) {
    const bool throttled = !request.context && soft_.is_throttled(charged() + request.need);
    if (throttled && soft_.has_to_wait(waiting.throttled_until, waiting.arrived, now)) return false;
    actions.push_back(grant(request, now));
    return true;
  }
  if (request.need <= limit_) {
    if (!recalled(waiting, now, actions)) return false;
    const bool time_will_do = request.need <= available() + unsettled();
    if (time_will_do && now < waiting.arrived + kLingerPatience) return false;
  }
  actions.push_back(
      GrantReply{request.tenant, request.seq, GrantStatus::kRefused, {}, available()});
  return true;
}

// Tenants answer a recall at different times. If the first tenant frees memory after its answer,
// and the second then allocates from its headroom before its own answer, the answers add up to more
// than was ever in use at one time. A second round of recalls shows that the sum was too high. So
// with several tenants a shortage is believed only after two rounds that bring nothing.
bool Account::recalled(Waiting& waiting, TimePoint now, GrantActions& actions) {
  if (!waiting.recall_deadline) {
    waiting.recall_deadline = now + kRecallPatience;
    recall_all(actions);
  }
  while (now < *waiting.recall_deadline) {
    if (!awaited_.empty()) return false;
    waiting.empty_rounds = round_brought_ ? 0 : waiting.empty_rounds + 1;
    if (waiting.empty_rounds >= (round_size_ > 1 ? 2 : 1)) return true;
    recall_all(actions);
  }
  return true;
}

GrantActions Account::recall_excess() {
  GrantActions actions;
  // While requests wait, a round of recalls is under way, or begins when the next request is
  // served.
  if (charged() > limit_ && waiting_.empty()) recall_all(actions);
  return actions;
}

void Account::recall_all(GrantActions& actions) {
  awaited_.clear();
  ++round_;
  round_brought_ = false;
  // Ask the requesting tenant, too: its other threads may have freed memory since it returned its
  // headroom.
  for (const auto& [tenant, holder] : holders_) {
    if (!holder.connected || holder.dead || holder.granted.is_zero()) continue;
    awaited_.insert(tenant);
    actions.push_back(GrantRecall{tenant, round_});
  }
  round_size_ = awaited_.size();
}

GrantReply Account::grant(const GrowRequest& request, TimePoint now) {
  AccountHolder* holder = find(request.tenant).if_there();
  if (!holder) return {request.tenant, request.seq, GrantStatus::kRefused, {}, {}};
  if (request.context) {
    holder->context_reserve += request.need;
    holder->reserved_since = now;
    return {request.tenant, request.seq, GrantStatus::kGranted, {}, available()};
  }
  const Bytes want = std::max(request.want, request.need);
  const bool exact = available() < want + kPlenty || soft_.is_throttled(charged() + want);
  const Bytes amount = exact ? request.need : want;
  holder->granted += amount;
  holder->last_grown = request.seq;
  return {request.tenant, request.seq, GrantStatus::kGranted, amount, available()};
}

GrantActions Account::serve(TimePoint now) {
  GrantActions actions;
  if (now < held_until_) return actions;
  while (!waiting_.empty()) {
    if (!answer(waiting_.front(), now, actions)) break;
    waiting_.pop_front();
    awaited_.clear();
  }
  return actions;
}

std::optional<TimePoint> Account::next_deadline() const {
  if (waiting_.empty()) return std::nullopt;
  const Waiting& head = waiting_.front();
  const TimePoint linger = head.arrived + kLingerPatience;
  TimePoint when = linger;
  if (head.recall_deadline && !awaited_.empty()) when = std::min(*head.recall_deadline, linger);
  if (head.throttled_until) when = std::min(*head.throttled_until, when);
  return std::max(when, held_until_);
}

Bytes Account::charged() const {
  Bytes sum = outsiders_;
  for (const auto& [tenant, holder] : holders_) sum += holder.charge();
  return sum - counted_again_;
}

Bytes Account::granted() const {
  Bytes sum;
  for (const auto& [tenant, holder] : holders_) sum += holder.granted;
  return sum;
}

Bytes Account::charged(TenantId tenant) const {
  const auto it = holders_.find(tenant);
  return it == holders_.end() ? Bytes() : it->second.charge();
}

Account::Holding Account::holding(TenantId tenant) const {
  const auto it = holders_.find(tenant);
  if (it == holders_.end()) return {};
  const AccountHolder& holder = it->second;
  const bool seen = !holder.dead && holder.context_reserve.is_zero();
  const bool measured = seen && !holder.unmeasured;
  return {holder.granted, holder.contexts, measured ? std::optional(holder.overhead) : std::nullopt,
          measured || (seen && holder.contexts == 0)};
}

Bytes Account::unsettled() const {
  Bytes sum;
  for (const auto& [tenant, holder] : holders_) {
    sum += holder.dead ? holder.charge() : holder.context_reserve;
  }
  return sum;
}

bool Account::has_dead() const {
  return std::any_of(holders_.begin(), holders_.end(), [](const auto& h) { return h.second.dead; });
}

bool Account::expects_measurement() const {
  return std::any_of(holders_.begin(), holders_.end(), [](const auto& h) {
    return h.second.dead || (h.second.unmeasured && h.second.contexts > 0);
  });
}

}  // namespace gpurota::lease
