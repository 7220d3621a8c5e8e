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

// Checks that `path` itself (not a symbolic link to it) is a directory owned by `owner` which
// nobody else may write to. kNotFound if it is not there; kDenied with the reason and the way out
// otherwise.
Result<void> check_directory(const std::string& path, uid_t owner);

// Checks that nobody but root and this process's user can put another file in the place of one in
// `folder`: the folder and all folders above it are checked. A folder for everybody passes if it is
// sticky (/tmp); a folder that a group may write to passes if the group is that of this user alone,
// as many systems make them. kDenied names the folder and the way out; else as fail_errno() does.
// Asks the account database.
Result<void> check_own_place(const std::string& folder);

}  // namespace gpurota
