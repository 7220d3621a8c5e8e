// Directories that must be ours: made if missing, and always checked. Used by the daemon (runtime
// and state directories) and by clients before they trust a socket below /tmp.
#pragma once

#include "base/result.h"

#include <string>

#include <sys/types.h>

namespace gpurota {

// Makes `path` with `mode`, and its parents with 0755, then checks it as check_directory does. An
// existing directory keeps its mode.
Result<void> make_directory(const std::string& path, mode_t mode);

// Checks that `path` itself (not the target of a symbolic link) is a directory owned by `owner` to
// which no other user may write. kNotFound if there is none; otherwise kDenied with the reason and
// the remedy.
Result<void> check_directory(const std::string& path, uid_t owner);

// Checks that only root and this process's user can replace a file in `folder`: checks the folder
// and all folders above it. A folder that everybody may write to passes if it is sticky (/tmp). A
// folder that a group may write to passes if the group is this user's own, as many systems make
// them. kDenied names the folder and the remedy; other errors are as from fail_errno(). Queries the
// account database.
Result<void> check_own_place(const std::string& folder);

}  // namespace gpurota
