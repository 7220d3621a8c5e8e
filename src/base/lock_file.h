// A file that one process at a time can hold. The kernel lets go when that process ends, however it
// ends; the file stays.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>

namespace gpurota {

// Holds `path` (mode 0600) for as long as the result lives, and writes our pid into it. If another
// process holds it: kLimit with `native` its pid (0 if it has not said) and a message that names
// neither purpose nor remedy; those are the caller's to tell.
Result<Fd> lock_file(const std::string& path);

}  // namespace gpurota
