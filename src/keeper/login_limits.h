// The resource limits that a login gives a user: /etc/security/limits.conf and limits.d, read like
// pam_limits (limits.conf(5)). Used by the keeper for commands of others. Parsing is pure.
//
// Not applied, because they are not limits of a process: maxlogins, maxsyslogins, chroot, priority,
// nonewprivs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

namespace gpurota::keeper {

struct LoginUser {
  std::string name;
  uid_t uid = 0;
  std::vector<gid_t> groups;  // including the primary group
  std::vector<std::string> group_names;
};

struct LoginLimit {
  int resource = 0;  // RLIMIT_…
  std::optional<rlim_t> soft, hard;
  bool operator==(const LoginLimit&) const = default;
};

// The limits in these files, which are in the order of reading. A line about the user takes
// precedence over one about a group, and that over one about everybody; among equals the last
// counts. Invalid lines are skipped.
std::vector<LoginLimit> parse_login_limits(const std::vector<std::string>& files,
                                           const LoginUser& user);
// The existing files, of at most 1 MiB each; limits.conf first.
std::vector<std::string> read_limit_files(const std::string& directory);
// The current limits, changed by `wanted`: the soft limit is never above the hard one.
rlimit merge(const rlimit& now, const LoginLimit& wanted);

}  // namespace gpurota::keeper
