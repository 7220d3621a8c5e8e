// Directories that must be ours: made if missing, checked always. Called by the daemon (runtime and
// state directories) and by clients before they trust a socket below /tmp.
#pragma once

#include "base/result.h"

#include <string>

#include <sys/types.h>

namespace gpurota {

// Makes `path` with `mode`, its parents with 0755, then checks it as check_directory does. A
// directory that is there keeps its mode.
Result<void> make_directory(const std::string& path, mode_t mode);

// That `path` itself (not a symbolic link to it) is a directory owned by `owner` which nobody else
// may write to. kNotFound if it is not there; kDenied with the reason and the way out otherwise.
Result<void> check_directory(const std::string& path, uid_t owner);

// That nobody but root and this process's user can put another file in the place of one in
// `folder`: so it is of the folder, and of all that it is in. A folder for everybody is one if it
// is sticky (/tmp); one that a group may write to is, if the group is that of this user alone, as
// many systems make them. kDenied names the folder and the way out; else as fail_errno() does. Asks
// the account database.
Result<void> check_own_place(const std::string& folder);

}  // namespace gpurota
