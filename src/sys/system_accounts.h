// The accounts of this machine, from its name services. See ports/accounts.h.
#pragma once

#include "ports/accounts.h"

namespace gpurota::sys {

class SystemAccounts final : public ports::Accounts {
 public:
  Result<uid_t> read_uid(const std::string& name) override;
  Result<gid_t> read_gid(const std::string& name) override;
  std::vector<std::string> read_user_names() override;
  std::vector<std::string> read_group_names() override;
  Result<ports::Account> read_account(uid_t uid) override;
  // From the file that subuid(5) describes.
  std::optional<uid_t> read_subordinate_owner(uid_t uid) override;
};

}  // namespace gpurota::sys
