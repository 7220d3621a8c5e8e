// The names of accounts, as the system's name services report them. Called by the CLI, and by the
// daemon through ports/accounts.h.
//
// Every call may block as long as a name service does, so the daemon makes these calls on a
// worker's thread. Any thread.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota {

// kNotFound if there is no such account. A number that names no account is the id itself, as in
// chown(1).
Result<uid_t> read_uid(const std::string& name);
Result<gid_t> read_gid(const std::string& name);

// The names in /etc/passwd and /etc/group, at most 4096, for suggestions. Accounts of a directory
// on the network are not listed.
std::vector<std::string> read_local_users();
std::vector<std::string> read_local_groups();

}  // namespace gpurota
