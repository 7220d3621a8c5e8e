// Copies libgpurota.so out of the container in which gpurotad runs, because programs outside cannot
// load the copy in the container's file system.
#pragma once

#include "base/result.h"

#include <string>

namespace gpurota::daemon {

// Copies `library` into `folder` and returns the path of the copy, which every user may read. Makes
// the folder as make_directory() does, open to all. Programs that have an earlier copy loaded keep
// that copy. kNotFound: there is no library; kInvalid: the folder is mounted noexec; else the
// errors of make_directory() and replace_file().
Result<std::string> publish_library(const std::string& library, const std::string& folder);

}  // namespace gpurota::daemon
