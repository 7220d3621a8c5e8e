#include "containers/file_text.h"

#include "base/fd.h"
#include "base/read_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;

// `path` may begin with '/', which is `root`. Invalid, with errno set: it cannot be opened. Never
// waits for the writer of a pipe.
Fd open_below(const fs::path& root, const fs::path& path, int flags) {
  flags |= O_CLOEXEC;
  if ((flags & O_PATH) == 0) flags |= O_NONBLOCK;  // openat2 refuses the two together
  const Fd top(::open(root.empty() ? "/" : root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) return Fd();
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT;
  const long opened = ::syscall(SYS_openat2, top.get(), path.c_str(), &how, sizeof how);
  if (opened >= 0) return Fd(static_cast<int>(opened));
  // Linux before 5.6, or a sandbox that refuses the call.
  if (errno != ENOSYS && errno != EPERM) return Fd();
  return Fd(::open((root / path.relative_path()).c_str(), flags));
}

}  // namespace

std::optional<std::string> file_text(const fs::path& root, const fs::path& path) {
  const Fd file = open_below(root, path, O_RDONLY);
  return file ? read_all(file.get(), kLargestFile) : std::nullopt;
}

std::vector<std::string> names_below(const fs::path& root, const fs::path& path) {
  std::vector<std::string> names;
  const Fd folder = open_below(root, path, O_RDONLY | O_DIRECTORY);
  if (!folder) return names;
  std::error_code error;
  for (fs::directory_iterator at(fmt::format("/proc/self/fd/{}", folder.get()), error), end;
       !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string real_path_below(const fs::path& root, const fs::path& path) {
  const Fd file = open_below(root, path, O_PATH);
  if (!file) return {};
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), error).string();
}

}  // namespace gpurota::containers
