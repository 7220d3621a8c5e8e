// Budgets: how much each user may use of the daemon's shared resources, over all leases,
// connections and protocols. All these limits are computed here. State thread only; decides, and
// does nothing else.
//
// Code that uses a resource for a user holds a `Held` as long as it uses the resource. The
// configuration has no limit for descriptors: a user may have only as many of them as are left for
// that user. One user alone thus has at most half of all, and a user who has few always gets
// another. A part of all descriptors is reserved for users who hold leases, and another part for
// root and the daemon itself.
#pragma once

#include "base/result.h"
#include "base/token_bucket.h"
#include "config/config.h"
#include "core/time.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace gpurota::daemon {

enum class Budget { kDescriptors, kTenants, kUnread, kUnserved, kJobLogs, kNewLeases };
inline constexpr std::array kBudgets = {Budget::kDescriptors, Budget::kTenants, Budget::kUnread,
                                        Budget::kUnserved,    Budget::kJobLogs, Budget::kNewLeases};
// "descriptors": for people.
const char* to_string(Budget budget);

class UserBudgets {
 public:
  struct Parts {
    const config::Config& config;
    std::uint64_t descriptors = 0;  // that this process may have
    uid_t daemon_user = 0;
    // Empty: nobody holds a lease.
    std::function<bool(uid_t)> holds_lease = {};
    // Empty: time stands still.
    std::function<TimePoint()> now = {};
  };

 private:
  using Used = std::map<std::pair<Budget, uid_t>, std::uint64_t>;

 public:
  // Counts against a user until it is destroyed. A Held may outlive the budgets.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept { *this = std::move(other); }
    Held& operator=(Held&& other) noexcept;
    ~Held() { set(0); }
    // Changes the amount, without checking the budget.
    void set(std::uint64_t amount);
    std::uint64_t amount() const { return amount_; }

   private:
    friend class UserBudgets;
    std::shared_ptr<Used> used_;
    std::pair<Budget, uid_t> key_{};
    std::uint64_t amount_ = 0;
  };

  explicit UserBudgets(Parts parts);

  // kLimit, with a sentence for the user that says what they have and what they may have.
  Result<Held> take(uid_t user, Budget budget, std::uint64_t amount = 1);
  // Like take(), for a use that exists already and so cannot be refused.
  Held charge(uid_t user, Budget budget, std::uint64_t amount = 1);

  // Counts one more lease, or request for one. The budget refills evenly, so that a user who has
  // used it up can soon make a few more; after an hour it is whole again. kLimit as in take(). Root
  // and the daemon's own user make as many as they like.
  Result<void> spend_lease(uid_t user);

  std::uint64_t used(uid_t user, Budget budget) const;
  // The most that the user could have in all at present.
  std::uint64_t most(uid_t user, Budget budget) const;
  bool is_used_up(uid_t user, Budget budget) const {
    return used(user, budget) >= most(user, budget);
  }
  // The user who uses most of the budget; nothing: nobody uses any of it.
  std::optional<uid_t> first(Budget budget) const;

 private:
  std::uint64_t left_of_descriptors(uid_t user) const;
  bool is_trusted(uid_t user) const { return user == 0 || user == parts_.daemon_user; }
  TimePoint now() const { return parts_.now ? parts_.now() : TimePoint{}; }
  TokenRate lease_rate() const;

  Parts parts_;
  std::shared_ptr<Used> used_ = std::make_shared<Used>();
  std::map<uid_t, TokenBucket> new_leases_;
};

}  // namespace gpurota::daemon
