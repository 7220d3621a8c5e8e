// The daemon's hold on its runtime directory: made, checked to be its own, and locked, so that two
// daemons never share one.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <chrono>
#include <string>

#include <sys/types.h>

namespace gpurota::ipc {

class RuntimeDir {
 public:
  // `mode` for a directory that is not there yet: 0755 where others connect, 0700 for a user's own.
  // kDenied if it is not ours alone to write to; kInvalid if another gpurotad holds it and does not
  // end within `patience`.
  static Result<RuntimeDir> make(const std::string& path, mode_t mode,
                                 std::chrono::milliseconds patience = std::chrono::milliseconds(0));

  const std::string& path() const { return path_; }

 private:
  RuntimeDir(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;  // an open file description with a lock, gone with the process however it ends
};

}  // namespace gpurota::ipc
