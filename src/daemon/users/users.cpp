#include "daemon/users/users.h"

#include "base/log.h"
#include "lease/allowance.h"

#include <algorithm>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

// may_exist() waits at most this long, and all users wait meanwhile.
constexpr std::chrono::milliseconds kMoment{250};

}  // namespace

Users::Users(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts,
             const config::Config& config, uid_t daemon_user, std::function<void()> on_late)
    : loop_(loop),
      accounts_(std::move(accounts)),
      config_(config),
      daemon_user_(daemon_user),
      on_late_(std::move(on_late)) {
  if (accounts_) worker_ = std::make_unique<sys::Worker>(loop_, "accounts");
}

Result<gid_t> Users::read_socket_group(ports::Accounts& accounts, const std::string& name) {
  auto group = accounts.read_gid(name);
  if (group || group.error().code != Code::kNotFound) return group;
  return fail(Code::kInvalid, group.error().message +
                                  ": make it with groupadd, or change `group` in the "
                                  "configuration");
}

std::vector<config::Problem> Users::read_unknown(ports::Accounts& accounts,
                                                 const std::vector<config::NamedAccount>& named) {
  return config::unknown_accounts(named, {[&](const config::NamedAccount& account) -> Result<void> {
                                            if (account.is_group)
                                              GPUROTA_TRY(accounts.read_gid(account.name));
                                            if (!account.is_group)
                                              GPUROTA_TRY(accounts.read_uid(account.name));
                                            return {};
                                          },
                                          [&](bool groups) {
                                            return groups ? accounts.read_group_names()
                                                          : accounts.read_user_names();
                                          }});
}

Users::Names Users::look_up(ports::Accounts& accounts, const Named& named) {
  Names names;
  // Nothing is kept for a name that does not exist; unknown_accounts() reports such names.
  const auto keep = [&](const auto& id, auto adopt) {
    if (id) adopt(*id);
  };
  names.rules.everyone = named.rules.everyone;
  for (const auto& [name, limits] : named.rules.users) {
    keep(accounts.read_uid(name),
         [&, &user = limits](uid_t uid) { names.rules.users[uid] = user; });
  }
  for (const auto& [name, limits] : named.rules.groups) {
    keep(accounts.read_gid(name),
         [&, &group = limits](gid_t gid) { names.rules.groups[gid] = group; });
  }
  for (const std::string& user : named.automatic) {
    if (user.front() != '@') continue;
    keep(accounts.read_gid(user.substr(1)), [&](gid_t gid) { names.automatic.insert(gid); });
  }
  for (const std::string& user : named.access.users) {
    keep(accounts.read_uid(user), [&](uid_t uid) { names.devices.users.insert(uid); });
  }
  for (const std::string& group : named.access.groups) {
    keep(accounts.read_gid(group), [&](gid_t gid) { names.devices.groups.insert(gid); });
  }
  if (!named.container_owner.empty()) {
    keep(accounts.read_uid(named.container_owner), [&](uid_t uid) { names.container_owner = uid; });
  }
  if (!named.admin_group.empty()) {
    keep(accounts.read_gid(named.admin_group), [&](gid_t gid) { names.administrators = gid; });
  }
  if (!named.socket_group.empty()) {
    names.socket_group = read_socket_group(accounts, named.socket_group);
  }
  names.unknown = read_unknown(accounts, named.accounts);
  return names;
}

void Users::adopt(Names names) {
  names_ = std::move(names);
  for (const config::Problem& problem : names_.unknown) log::warn(to_string(problem));
}

bool Users::resolve(std::chrono::milliseconds patience) {
  config::Loaded loaded;
  loaded.config = config_;
  return resolve(patience, config::named_accounts(loaded, ::geteuid()));
}

bool Users::resolve(std::chrono::milliseconds patience,
                    std::vector<config::NamedAccount> accounts) {
  if (!accounts_) {
    names_ = {};
    names_.rules.everyone = config_.limits.everyone;
    return true;
  }
  const std::uint64_t question = ++asked_;
  waits_ = true;
  const Named named{config_.limits,     config_.admin_group, config_.automatic.users,
                    config_.group,      config_.access,      config_.containers.owner,
                    std::move(accounts)};
  const bool answered = worker_->run_and_wait(
      patience, [accounts = accounts_, named] { return look_up(*accounts, named); },
      [this, question](Names names) {
        if (question != asked_) return;  // of an earlier configuration
        adopt(std::move(names));
        if (!waits_ && on_late_) on_late_();
      });
  waits_ = false;
  if (answered) return true;
  names_.rules.everyone = config_.limits.everyone;  // this names nobody
  log::warn(
      "the account database does not answer; settings for named users and groups take effect once "
      "it does");
  return false;
}

void Users::greet(uid_t uid, const std::vector<gid_t>& groups) {
  ask_if_old(uid, meet(uid, groups));
}

std::optional<std::vector<std::string>> Users::group_names(uid_t uid) {
  if (!accounts_) return std::vector<std::string>();
  User& user = meet(uid, {});
  ask_if_old(uid, user);
  return user.group_names;
}

Users::User& Users::meet(uid_t uid, const std::vector<gid_t>& groups) {
  auto it = users_.find(uid);
  if (it == users_.end()) {
    if (users_.size() >= kMostUsers) forget_oldest();
    it = users_.emplace(uid, User{}).first;
  }
  it->second.seen = loop_.now();
  if (!it->second.read) it->second.groups.insert(groups.begin(), groups.end());
  return it->second;
}

void Users::ask_if_old(uid_t uid, User& user) {
  if (user.asking || (user.read && loop_.now() - *user.read < kFresh)) return;
  user.asking = true;
  ask(uid);
}

void Users::ask(uid_t uid) {
  if (!accounts_) return;
  worker_->run([accounts = accounts_, uid] { return accounts->read_account(uid); },
               [this, uid](const Result<ports::Account>& account) { take(uid, account); });
}

void Users::look_up(uid_t uid, std::function<void(const Result<ports::Account>&)> done) {
  if (!accounts_) return done(fail(Code::kUnavailable, "there is no account database"));
  (void)meet(uid, {});
  worker_->run([accounts = accounts_, uid] { return accounts->read_account(uid); },
               [this, uid, done = std::move(done)](const Result<ports::Account>& account) {
                 take(uid, account);
                 done(account);
               });
}

void Users::take(uid_t uid, const Result<ports::Account>& account) {
  const auto it = users_.find(uid);
  if (it == users_.end()) return;
  User& user = it->second;
  user.asking = false;
  user.read = loop_.now();
  if (account) {
    user.groups.clear();
    user.group_names.emplace();
    for (const ports::Group& group : account->groups) {
      user.groups.insert(group.gid);
      user.group_names->push_back(group.name);
    }
  } else if (account.error().code == Code::kNotFound) {
    user.group_names.emplace();  // the kernel's groups stay in effect, without names
  }                              // otherwise the known groups stay in effect
}

bool Users::may_connect(uid_t uid, const ports::Account& account) const {
  if (!names_.socket_group || !*names_.socket_group || uid == 0 || uid == daemon_user_) return true;
  return std::any_of(account.groups.begin(), account.groups.end(),
                     [&](const ports::Group& group) { return group.gid == **names_.socket_group; });
}

void Users::forget_oldest() {
  const auto oldest =
      std::min_element(users_.begin(), users_.end(),
                       [](const auto& a, const auto& b) { return a.second.seen < b.second.seen; });
  users_.erase(oldest);
}

const std::set<gid_t>& Users::groups_of(uid_t uid) const {
  static const std::set<gid_t> kNone;
  const auto it = users_.find(uid);
  return it == users_.end() ? kNone : it->second.groups;
}

bool Users::is_administrator(uid_t uid) const {
  if (uid == 0 || uid == daemon_user_) return true;
  return names_.administrators && groups_of(uid).contains(*names_.administrators);
}

bool Users::may_exist(const std::string& name) {
  if (!accounts_ || owes_answer_) return true;
  const auto exists = std::make_shared<bool>(true);
  owes_answer_ = !worker_->run_and_wait(
      kMoment, [accounts = accounts_, name] { return accounts->read_uid(name); },
      [this, exists](const Result<uid_t>& uid) {
        *exists = uid || uid.error().code != Code::kNotFound;
        owes_answer_ = false;
      });
  return *exists;
}

UserLimits Users::limits_of(uid_t uid) const {
  return lease::limits_of(names_.rules, uid, groups_of(uid));
}

lease::LimitOrigins Users::origins_of(uid_t uid) const {
  return lease::origins_of(names_.rules, uid, groups_of(uid));
}

}  // namespace gpurota::daemon
