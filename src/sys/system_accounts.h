// The accounts of this machine, as its name services tell. See ports/accounts.h.
#pragma once

#include "ports/accounts.h"

namespace gpurota::sys {

class SystemAccounts final : public ports::Accounts {
 public:
  Result<uid_t> read_uid(const std::string& name) override;
  Result<gid_t> read_gid(const std::string& name) override;
  Result<ports::Account> read_account(uid_t uid) override;
};

}  // namespace gpurota::sys
