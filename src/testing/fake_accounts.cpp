#include "testing/fake_accounts.h"

namespace gpurota::testing {

void FakeAccounts::add_user(const std::string& name, uid_t uid, const std::vector<gid_t>& groups) {
  const std::lock_guard lock(mutex_);
  users_[name] = uid;
  accounts_[uid].name = name;
  accounts_[uid].groups.clear();
  for (const gid_t gid : groups) accounts_[uid].groups.push_back({gid, std::to_string(gid)});
}

void FakeAccounts::remove_user(const std::string& name) {
  const std::lock_guard lock(mutex_);
  accounts_.erase(users_.at(name));
  users_.erase(name);
}

void FakeAccounts::add_group(const std::string& name, gid_t gid) {
  const std::lock_guard lock(mutex_);
  group_ids_[name] = gid;
  for (auto& [uid, account] : accounts_) {
    for (ports::Group& group : account.groups) {
      if (group.gid == gid) group.name = name;
    }
  }
}

int FakeAccounts::lookups() const {
  const std::lock_guard lock(mutex_);
  return lookups_;
}

void FakeAccounts::block() {
  const std::lock_guard lock(mutex_);
  blocked_ = true;
}

void FakeAccounts::unblock() {
  const std::lock_guard lock(mutex_);
  blocked_ = false;
  unblocked_.notify_all();
}

std::unique_lock<std::mutex> FakeAccounts::answer() const {
  std::unique_lock lock(mutex_);
  unblocked_.wait(lock, [this] { return !blocked_; });
  return lock;
}

Result<uid_t> FakeAccounts::read_uid(const std::string& name) {
  const auto lock = answer();
  const auto it = users_.find(name);
  if (it == users_.end()) return fail(Code::kNotFound, "there is no user \"" + name + "\"");
  return it->second;
}

Result<gid_t> FakeAccounts::read_gid(const std::string& name) {
  const auto lock = answer();
  const auto it = group_ids_.find(name);
  if (it == group_ids_.end()) return fail(Code::kNotFound, "there is no group \"" + name + "\"");
  return it->second;
}

std::vector<std::string> FakeAccounts::read_user_names() {
  const auto lock = answer();
  std::vector<std::string> names;
  for (const auto& [name, uid] : users_) names.push_back(name);
  return names;
}

Result<ports::Account> FakeAccounts::read_account(uid_t uid) {
  const auto lock = answer();
  ++lookups_;
  const auto it = accounts_.find(uid);
  if (it == accounts_.end()) return fail(Code::kNotFound, "no such user");
  return it->second;
}

}  // namespace gpurota::testing
