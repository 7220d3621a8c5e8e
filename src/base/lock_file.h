// A file that one process at a time can hold. The kernel lets go when that process ends, however it
// ends; the file stays.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <chrono>
#include <string>

namespace gpurota {

// Holds `path` (mode 0600) for as long as the result lives, and writes our pid into it. If another
// process holds it: kLimit with `native` its pid (0 if it has not said) and a message that names
// neither purpose nor remedy; those are the caller's to tell. Waits up to `patience` for it: a
// process that was killed still holds what it had until the kernel has taken it down.
Result<Fd> lock_file(const std::string& path,
                     std::chrono::milliseconds patience = std::chrono::milliseconds(0));

}  // namespace gpurota
