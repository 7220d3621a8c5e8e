#include "base/directory.h"

#include <fmt/core.h>

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota {
namespace {

// All but the last component. Existing ones are left as they are.
void make_parents(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    // A failure shows, with its reason, when the directory itself is made.
    (void)::mkdir(path.substr(0, at).c_str(), 0755);
  }
}

}  // namespace

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (path.empty() || path.front() != '/') {
    return fail(Code::kInvalid, fmt::format("the directory '{}' must be an absolute path", path));
  }
  if (::mkdir(path.c_str(), mode) != 0 && errno == ENOENT) {
    make_parents(path);
    (void)::mkdir(path.c_str(), mode);
  }
  if (struct stat info{}; ::lstat(path.c_str(), &info) != 0) {
    // The second mkdir's reason, as lstat only knows that nothing is there.
    if (::mkdir(path.c_str(), mode) != 0)
      return fail_errno("cannot make the directory " + path, errno);
  }
  return check_directory(path, ::geteuid());
}

Result<void> check_directory(const std::string& path, uid_t owner) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail_errno("cannot look at " + path, errno);
  if (S_ISLNK(info.st_mode)) {
    return fail(
        Code::kDenied,
        fmt::format("{} is a symbolic link; give the directory itself, or remove it", path));
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(Code::kDenied, fmt::format("{} is there, but is not a directory", path));
  }
  if (info.st_uid != owner) {
    return fail(Code::kDenied,
                fmt::format("{} belongs to user {}, not to user {}: choose another directory", path,
                            info.st_uid, owner));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(
        Code::kDenied,
        fmt::format("others may write to {}: run `chmod go-w {}` if you trust what is in it", path,
                    path));
  }
  return {};
}

}  // namespace gpurota
