// The resource limits that a login gives a user: /etc/security/limits.conf and limits.d, as
// pam_limits reads them (limits.conf(5)). Used by the keeper for the commands of others. The
// reading of text is pure.
//
// Not applied, as they are none of a process: maxlogins, maxsyslogins, chroot, priority,
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
  std::vector<gid_t> groups;  // the first of them too
  std::vector<std::string> group_names;
};

struct LoginLimit {
  int resource = 0;  // RLIMIT_…
  std::optional<rlim_t> soft, hard;
  bool operator==(const LoginLimit&) const = default;
};

// Of these files, in their order. A line about the user counts before one about a group, and that
// before one about everybody; else the last one counts. Lines that make no sense are passed over.
std::vector<LoginLimit> parse_login_limits(const std::vector<std::string>& files,
                                           const LoginUser& user);
// The files that are there, each of at most 1 MiB; limits.conf first.
std::vector<std::string> read_limit_files(const std::string& directory);
// The limits that are, with what is said of them: the soft one is never above the hard one.
rlimit merge(const rlimit& now, const LoginLimit& wanted);

}  // namespace gpurota::keeper
