// A file that one process at a time can hold. The kernel releases the lock when that process ends,
// however it ends; the file stays.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <chrono>
#include <string>

namespace gpurota {

// Holds `path` (mode 0600) for as long as the result lives, and writes our pid into it. If another
// process holds it: kLimit, with `native` its pid (0 if unknown); the caller adds purpose and
// remedy to the message. Waits up to `patience`: a killed process holds the lock until the kernel
// has cleaned up after the process.
Result<Fd> lock_file(const std::string& path,
                     std::chrono::milliseconds patience = std::chrono::milliseconds(0));

}  // namespace gpurota
