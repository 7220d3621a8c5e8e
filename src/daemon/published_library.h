// libgpurota.so where programs outside find it: a gpurotad in a container has its own in the
// container's file system.
#pragma once

#include "base/result.h"

#include <string>

namespace gpurota::daemon {

// Copies `library` into `folder`, which is made as make_directory() does and open to all, and
// returns the copy's path. Programs that have an earlier copy loaded keep it. kNotFound: there is
// no library; kInvalid: the folder is mounted noexec; else as make_directory() and replace_file().
Result<std::string> publish_library(const std::string& library, const std::string& folder);

}  // namespace gpurota::daemon
