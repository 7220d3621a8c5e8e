// The machine's accounts: /etc/passwd, /etc/group, or a directory on the network. Behind an
// interface so that tests need no accounts.
//
// Every call may block for as long as a name service does, so the daemon calls on a worker's
// thread. One thread at a time calls an implementation.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::ports {

struct Group {
  gid_t gid = 0;
  std::string name;  // the gid if the group has no name
};
struct Account {
  std::string name;
  std::vector<Group> groups;  // the primary one first
};

class Accounts {
 public:
  virtual ~Accounts() = default;

  // kNotFound where there is no such account. A name may be a number.
  virtual Result<uid_t> read_uid(const std::string& name) = 0;
  virtual Result<gid_t> read_gid(const std::string& name) = 0;
  // Names to suggest in place of an unknown one; not a complete list.
  virtual std::vector<std::string> read_user_names() { return {}; }
  virtual std::vector<std::string> read_group_names() { return {}; }
  virtual Result<Account> read_account(uid_t uid) = 0;
  // The account that has this number among its subordinate ids; nothing: there is none.
  virtual std::optional<uid_t> read_subordinate_owner(uid_t /*uid*/) { return std::nullopt; }
};

}  // namespace gpurota::ports
