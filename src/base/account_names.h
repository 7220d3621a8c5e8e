// The names of accounts, as the system's name services know them. For the CLI, and behind
// ports/accounts.h for the daemon.
//
// Every call may block for as long as a name service does: the daemon makes them on a worker's
// thread. Any thread.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota {

// kNotFound where there is no such account. A number that is no account's name is taken as it is,
// as chown(1) does.
Result<uid_t> read_uid(const std::string& name);
Result<gid_t> read_gid(const std::string& name);

// Those of /etc/passwd and /etc/group, at most 4096: for proposals. A directory on the network is
// not listed.
std::vector<std::string> read_local_users();
std::vector<std::string> read_local_groups();

}  // namespace gpurota
