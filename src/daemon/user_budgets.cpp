#include "daemon/user_budgets.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Of the descriptors: for root and the daemon itself, and beside that for those who hold leases.
constexpr std::uint64_t kPartOfDaemon = 8;
constexpr std::uint64_t kPartOfHolders = 8;

}  // namespace

const char* to_string(Budget budget) {
  switch (budget) {
    case Budget::kDescriptors:
      return "descriptors";
    case Budget::kTenants:
      return "programs under limits";
    case Budget::kUnread:
      return "answers not read";
    case Budget::kJobLogs:
      return "output of jobs";
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
  if (user == 0 || user == parts_.daemon_user) return left(0);
  const std::uint64_t daemon = parts_.descriptors / kPartOfDaemon;
  const bool holder = parts_.holds_lease && parts_.holds_lease(user);
  return left(holder ? daemon : daemon + parts_.descriptors / kPartOfHolders);
}

std::uint64_t UserBudgets::most(uid_t user, Budget budget) const {
  if (budget == Budget::kTenants) {
    return static_cast<std::uint64_t>(parts_.config.max_tenants_per_user);
  }
  if (budget == Budget::kJobLogs) return parts_.config.job_log_size_per_user.count();
  if (budget == Budget::kUnread) return parts_.config.unread_size_per_user.count();
  const std::uint64_t own = used(user, budget), left = left_of_descriptors(user);
  // Half of what is or could be theirs. Root and the daemon's own user are who would have to mend it: all of that.
  const bool trusted = user == 0 || user == parts_.daemon_user;
  return trusted ? own + left : (own + left) / 2;
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

std::optional<uid_t> UserBudgets::first(Budget budget) const {
  const auto end = used_->upper_bound({budget, static_cast<uid_t>(-1)});
  const auto begin = used_->lower_bound({budget, 0});
  const auto most = std::max_element(
      begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == end ? std::nullopt : std::optional(most->first.second);
}

}  // namespace gpurota::daemon
