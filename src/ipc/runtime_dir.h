// The daemon's runtime directory: makes it, checks that only the daemon's user may write to it, and
// locks it, so that two daemons never share one.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <chrono>
#include <string>

#include <sys/types.h>

namespace gpurota::ipc {

class RuntimeDir {
 public:
  // `mode` is for a directory that does not exist yet: 0755 where others connect, 0700 for a user's
  // own. kDenied if others than us may write to the directory; kInvalid if another gpurotad has
  // locked it and does not end within `patience`.
  static Result<RuntimeDir> make(const std::string& path, mode_t mode,
                                 std::chrono::milliseconds patience = std::chrono::milliseconds(0));

  const std::string& path() const { return path_; }

 private:
  RuntimeDir(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;  // an open file with a lock, which ends with the process however it ends
};

}  // namespace gpurota::ipc
