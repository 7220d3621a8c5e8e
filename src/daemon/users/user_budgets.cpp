#include "daemon/users/user_budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace gpurota::daemon {
namespace {

// 1/kPartOfDaemon of the descriptors is reserved for root and the daemon itself, and
// 1/kPartOfHolders for users who hold leases.
constexpr std::uint64_t kPartOfDaemon = 8;
constexpr std::uint64_t kPartOfHolders = 8;
// The time in which an empty budget of new leases refills.
constexpr std::chrono::hours kRefill{1};
// If more users than this have an entry, the entries of users whose budget is full are removed.
constexpr std::size_t kMostKept = 64;

}  // namespace

const char* to_string(Budget budget) {
  switch (budget) {
    case Budget::kDescriptors:
      return "descriptors";
    case Budget::kTenants:
      return "programs under limits";
    case Budget::kUnread:
      return "answers not read";
    case Budget::kUnserved:
      return "calls not served";
    case Budget::kJobLogs:
      return "output of jobs and fillers";
    case Budget::kNewLeases:
      return "new leases";
  }
  return "";
}

UserBudgets::Held& UserBudgets::Held::operator=(Held&& other) noexcept {
  if (this == &other) return *this;
  set(0);
  used_ = std::move(other.used_);
  key_ = other.key_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

void UserBudgets::Held::set(std::uint64_t amount) {
  if (!used_ || amount == amount_) return;
  std::uint64_t& used = (*used_)[key_];
  used = used - amount_ + amount;
  amount_ = amount;
  if (used == 0) used_->erase(key_);
}

UserBudgets::UserBudgets(Parts parts) : parts_(std::move(parts)) {}

std::uint64_t UserBudgets::used(uid_t user, Budget budget) const {
  if (budget == Budget::kNewLeases) {
    const auto at = new_leases_.find(user);
    const double spent = at == new_leases_.end() ? 0 : at->second.spent(now(), lease_rate());
    return static_cast<std::uint64_t>(std::ceil(spent));
  }
  const auto it = used_->find({budget, user});
  return it == used_->end() ? 0 : it->second;
}

std::uint64_t UserBudgets::left_of_descriptors(uid_t user) const {
  std::uint64_t taken = 0;
  const auto end = used_->lower_bound({Budget::kTenants, 0});
  for (auto it = used_->lower_bound({Budget::kDescriptors, 0}); it != end; ++it) {
    taken += it->second;
  }
  const auto left = [&](std::uint64_t reserve) {
    return parts_.descriptors - std::min(parts_.descriptors, taken + reserve);
  };
  if (is_trusted(user)) return left(0);
  const std::uint64_t daemon = parts_.descriptors / kPartOfDaemon;
  const bool holder = parts_.holds_lease && parts_.holds_lease(user);
  return left(holder ? daemon : daemon + parts_.descriptors / kPartOfHolders);
}

std::uint64_t UserBudgets::most(uid_t user, Budget budget) const {
  if (budget == Budget::kTenants) {
    return static_cast<std::uint64_t>(parts_.config.max_tenants_per_user);
  }
  if (budget == Budget::kNewLeases) {
    return static_cast<std::uint64_t>(parts_.config.max_new_leases_per_hour);
  }
  if (budget == Budget::kJobLogs) return parts_.config.job_log_size_per_user.count();
  if (budget == Budget::kUnread || budget == Budget::kUnserved)
    return parts_.config.unread_size_per_user.count();
  const std::uint64_t own = used(user, budget), left = left_of_descriptors(user);
  // A user may have half of the sum of what they have and what is left for them. Root and the
  // daemon's own user may have all of it, because they have to repair a shortage.
  return is_trusted(user) ? own + left : (own + left) / 2;
}

Result<UserBudgets::Held> UserBudgets::take(uid_t user, Budget budget, std::uint64_t amount) {
  const std::uint64_t own = used(user, budget), most_now = most(user, budget);
  if (own + amount <= most_now) return charge(user, budget, amount);
  if (budget == Budget::kDescriptors) {
    return fail(Code::kLimit,
                fmt::format("the connections and programs of user {} hold {} of gpurotad's {} "
                            "descriptors, and nobody may hold more than are left: end some of them",
                            user, own, parts_.descriptors));
  }
  return fail(
      Code::kLimit,
      fmt::format("user {} has {} {}, and the site allows {} for each (max_tenants_per_user)", user,
                  own, to_string(budget), most_now));
}

UserBudgets::Held UserBudgets::charge(uid_t user, Budget budget, std::uint64_t amount) {
  Held held;
  held.used_ = used_;
  held.key_ = {budget, user};
  held.set(amount);
  return held;
}

TokenRate UserBudgets::lease_rate() const {
  return {parts_.config.max_new_leases_per_hour, kRefill};
}

Result<void> UserBudgets::spend_lease(uid_t user) {
  if (is_trusted(user)) return {};
  if (new_leases_.size() > kMostKept) {
    std::erase_if(new_leases_, [this](const auto& entry) {
      return entry.second.spent(now(), lease_rate()) <= 0;
    });
  }
  TokenBucket& bucket = new_leases_[user];
  if (!bucket.take(now(), lease_rate())) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(bucket.next(lease_rate()) - now());
    return fail(
        Code::kLimit,
        fmt::format("you have made {} leases or requests within an hour, and the site allows no "
                    "more just now (max_new_leases_per_hour): wait {} s for the next, or run many "
                    "short programs under one lease (gpurota reserve, then gpurota run --lease)",
                    used(user, Budget::kNewLeases), wait.count()));
  }
  return {};
}

std::optional<uid_t> UserBudgets::first(Budget budget) const {
  if (budget == Budget::kNewLeases) {
    const auto most = std::max_element(
        new_leases_.begin(), new_leases_.end(), [this](const auto& a, const auto& b) {
          return a.second.spent(now(), lease_rate()) < b.second.spent(now(), lease_rate());
        });
    return most == new_leases_.end() ? std::nullopt : std::optional(most->first);
  }
  const auto end = used_->upper_bound({budget, static_cast<uid_t>(-1)});
  const auto begin = used_->lower_bound({budget, 0});
  const auto most = std::max_element(
      begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == end ? std::nullopt : std::optional(most->first.second);
}

}  // namespace gpurota::daemon
