#include "ipc/runtime_dir.h"

#include "base/directory.h"
#include "base/lock_file.h"

#include <fmt/core.h>

namespace gpurota::ipc {

Result<RuntimeDir> RuntimeDir::make(const std::string& path, mode_t mode,
                                    std::chrono::milliseconds patience) {
  GPUROTA_TRY(make_directory(path, mode));
  auto lock = lock_file(path + "/gpurotad.lock", patience);
  if (lock) return RuntimeDir(path, std::move(*lock));
  if (lock.error().code != Code::kLimit) return tl::unexpected<Error>(std::move(lock).error());
  return fail(
      Code::kInvalid,
      fmt::format("another gpurotad is running here: process {} holds {}. Stop it, or choose "
                  "another directory with --runtime-dir",
                  lock.error().native, path));
}

}  // namespace gpurota::ipc
