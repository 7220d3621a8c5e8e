// Accounts that a test makes up. Any thread.
#pragma once

#include "ports/accounts.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace gpurota::testing {

class FakeAccounts final : public ports::Accounts {
 public:
  void add_user(const std::string& name, uid_t uid, const std::vector<gid_t>& groups);
  void remove_user(const std::string& name);
  void add_group(const std::string& name, gid_t gid);
  // Every lookup hangs, as with a directory that does not answer, until unblock().
  void block();
  void unblock();
  int lookups() const;  // lookups of users by uid so far

  Result<uid_t> read_uid(const std::string& name) override;
  Result<gid_t> read_gid(const std::string& name) override;
  std::vector<std::string> read_user_names() override;
  Result<ports::Account> read_account(uid_t uid) override;

 private:
  std::unique_lock<std::mutex> answer() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable unblocked_;
  bool blocked_ = false;
  std::map<std::string, uid_t> users_;
  std::map<std::string, gid_t> group_ids_;
  std::map<uid_t, ports::Account> accounts_;
  int lookups_ = 0;
};

}  // namespace gpurota::testing
