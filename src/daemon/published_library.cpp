#include "daemon/published_library.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace gpurota::daemon {
namespace {

constexpr mode_t kForAll = 0755;
constexpr std::size_t kLargestLibrary = std::size_t{256} << 20U;

std::optional<std::string> bytes_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? read_all(file.get(), kLargestLibrary) : std::nullopt;
}

// Whatever our umask is.
Result<void> make_library_folder(const std::string& folder) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(folder, error);
  if (error) return fail_errno("cannot make " + folder, error.value());
  if (made && ::chmod(folder.c_str(), kForAll) != 0) {
    return fail_errno("cannot let everybody into " + folder, errno);
  }
  struct statvfs system {};
  if (::statvfs(folder.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0) {
    return fail(Code::kInvalid,
                folder +
                    " is on a file system that is mounted noexec, so programs cannot load "
                    "libgpurota.so from it: choose another folder for --publish-library");
  }
  return {};
}

}  // namespace

Result<std::string> publish_library(const std::string& library, const std::string& folder) {
  if (library.empty()) {
    return fail(Code::kNotFound,
                "libgpurota.so is not beside this gpurotad: say where it is with --preload FILE");
  }
  const auto bytes = bytes_of(library);
  if (!bytes) return fail_errno("cannot read " + library, errno);
  GPUROTA_TRY(make_library_folder(folder));
  const std::string copy = folder + "/libgpurota.so";
  // An equal one stays, with what has it mapped.
  if (bytes_of(copy) != bytes) {
    GPUROTA_TRY(replace_file(copy, *bytes, kForAll));
  } else if (::chmod(copy.c_str(), kForAll) != 0) {
    return fail_errno("cannot let everybody read " + copy, errno);
  }
  return copy;
}

}  // namespace gpurota::daemon
