#include "daemon/published_library.h"

#include "base/directory.h"
#include "base/replace_file.h"
#include "sys/proc_files.h"

#include <cerrno>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr mode_t kForAll = 0755;
constexpr std::size_t kLargestLibrary = std::size_t{256} << 20U;

Result<void> make_library_folder(const std::string& folder) {
  const bool is_there = ::access(folder.c_str(), F_OK) == 0;
  GPUROTA_TRY(make_directory(folder, kForAll));
  // The mode must not depend on the umask of this process.
  if (!is_there && ::chmod(folder.c_str(), kForAll) != 0) {
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
  const auto bytes = sys::read_whole(library, kLargestLibrary);
  if (!bytes) return fail_errno("cannot read " + library, errno);
  GPUROTA_TRY(make_library_folder(folder));
  const std::string copy = folder + "/libgpurota.so";
  // Leave an equal copy in place.
  if (sys::read_whole(copy, kLargestLibrary) != bytes) {
    GPUROTA_TRY(replace_file(copy, *bytes, kForAll));
  } else if (::chmod(copy.c_str(), kForAll) != 0) {
    return fail_errno("cannot let everybody read " + copy, errno);
  }
  return copy;
}

}  // namespace gpurota::daemon
