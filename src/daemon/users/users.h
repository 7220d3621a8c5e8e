// The users: their groups, their limits, and which of them are administrators. State thread only;
// calls that may block (a name service) are made by a worker, never here.
//
// The groups of a user come from the account database: they are read when the user first connects,
// and again when the last answer is old. Until the first answer, the groups that the kernel
// reported for the connection are used. Bounded: if there are too many users, the user who has not
// been seen for longest is removed.
#pragma once

#include "access/device_rights.h"
#include "base/result.h"
#include "config/config.h"
#include "config/names.h"
#include "core/time.h"
#include "core/user_limits.h"
#include "lease/allowance.h"
#include "ports/accounts.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

// The groups that users are in.
class UserGroups {
 public:
  virtual ~UserGroups() = default;
  // The names of the user's groups, the primary one first. Nothing while they are not known.
  virtual std::optional<std::vector<std::string>> group_names(uid_t uid) = 0;
};

class Users final : public UserGroups {
 public:
  static constexpr std::size_t kMostUsers = 4096;
  static constexpr Duration kFresh = std::chrono::minutes(1);

  // Without `accounts` only the kernel's groups are known, and no rule for a name applies.
  // `accounts` is shared, because a query that hangs outlives this object.
  Users(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts,
        const config::Config& config, uid_t daemon_user, std::function<void()> on_late = {});

  // The users and groups of `named` that `accounts` does not know.
  static std::vector<config::Problem> read_unknown(ports::Accounts& accounts,
                                                   const std::vector<config::NamedAccount>& named);
  // The group of the sockets (`group`). kInvalid: there is no such group; the message says what to
  // do.
  static Result<gid_t> read_socket_group(ports::Accounts& accounts, const std::string& name);
  // The group of the sockets, as resolve() found it; empty: the configuration names none.
  const std::optional<Result<gid_t>>& socket_group() const { return names_.socket_group; }

  // Looks up the names of the configuration, and waits at most `patience` for the answer. False:
  // the answer will come later; `on_late` is called then, and the old names stay in effect until
  // then. `named`: the names to check for unknown(), with their places.
  bool resolve(std::chrono::milliseconds patience, std::vector<config::NamedAccount> named);
  bool resolve(std::chrono::milliseconds patience);
  // The names of the configuration that do not exist, as resolve() found them.
  const std::vector<config::Problem>& unknown() const { return names_.unknown; }

  // A user has connected; `groups`: the supplementary groups, as the kernel reports them.
  void greet(uid_t uid, const std::vector<gid_t>& groups);

  // Root, the daemon's own user and members of admin_group.
  bool is_administrator(uid_t uid) const;
  // False if the account database answers within a moment that it has no such name. Does not wait
  // while an earlier query of this kind is unanswered.
  bool may_exist(const std::string& name);
  UserLimits limits_of(uid_t uid) const;
  lease::LimitOrigins origins_of(uid_t uid) const;
  // The groups of automatic.users.
  const std::set<gid_t>& automatic_groups() const { return names_.automatic; }
  // The users and groups of access.users and access.groups.
  const access::Who& device_users() const { return names_.devices; }
  // The user of containers.owner; nothing: none is named, or there is no such account.
  const std::optional<uid_t>& container_owner() const { return names_.container_owner; }
  // Also for a user who is not connected. Queries the account database, and returns nothing until
  // the database has answered.
  std::optional<std::vector<std::string>> group_names(uid_t uid) override;
  // Asks the account database. `done` is called on the loop once the database has answered;
  // is_administrator() then already uses the answer.
  void look_up(uid_t uid, std::function<void(const Result<ports::Account>&)> done);
  // Whether `group` in the configuration lets this user connect.
  bool may_connect(uid_t uid, const ports::Account& account) const;
  std::size_t known_users() const { return users_.size(); }

 private:
  struct Names {
    ResolvedRules rules;
    std::optional<gid_t> administrators;
    std::set<gid_t> automatic;
    access::Who devices;
    std::optional<uid_t> container_owner;
    std::optional<Result<gid_t>> socket_group;
    std::vector<config::Problem> unknown;
  };
  struct User {
    std::set<gid_t> groups;
    std::optional<std::vector<std::string>> group_names;
    std::optional<TimePoint> read;  // when the database answered last
    TimePoint seen{};
    bool asking = false;
  };

  // The settings that name users and groups.
  struct Named {
    LimitRules rules;
    std::string admin_group;
    std::vector<std::string> automatic;
    std::string socket_group;
    config::Access access;
    std::string container_owner;
    std::vector<config::NamedAccount> accounts;
  };
  static Names look_up(ports::Accounts& accounts, const Named& named);
  void adopt(Names names);
  // The entry for a user; a new one if there is none.
  User& meet(uid_t uid, const std::vector<gid_t>& groups);
  void ask_if_old(uid_t uid, User& user);
  void ask(uid_t uid);
  void take(uid_t uid, const Result<ports::Account>& account);
  void forget_oldest();
  const std::set<gid_t>& groups_of(uid_t uid) const;

  ports::EventLoop& loop_;
  std::shared_ptr<ports::Accounts> accounts_;
  const config::Config& config_;
  uid_t daemon_user_;
  std::function<void()> on_late_;
  Names names_;
  std::uint64_t asked_ = 0;   // how many times resolve() has asked
  bool waits_ = false;        // resolve() is not over
  bool owes_answer_ = false;  // may_exist() got no answer in time
  std::map<uid_t, User> users_;
  std::unique_ptr<sys::Worker> worker_;  // uses accounts_
};

}  // namespace gpurota::daemon
