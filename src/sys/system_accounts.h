// The accounts of this machine, as its name services tell. See ports/accounts.h.
#pragma once

#include "ports/accounts.h"

namespace gpurota::sys {

class SystemAccounts final : public ports::Accounts {
 public:
  Result<uid_t> read_uid(const std::string& name) override;
  Result<gid_t> read_gid(const std::string& name) override;
  Result<std::vector<gid_t>> read_groups(uid_t uid) override;
};

}  // namespace gpurota::sys
