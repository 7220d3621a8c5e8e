#include "base/directory.h"

#include "base/fd.h"

#include <fmt/core.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota {
namespace {

// Makes a directory with exactly `mode` if `mode` has bits for others, whatever the umask is.
// Returns 0 or errno.
int make_one(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0) return errno;
  if ((mode & S_IRWXO) == 0) return 0;
  // Opened first: by now the path may name a directory of somebody else.
  const Fd made(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return made && ::fchmod(made.get(), mode) == 0 ? 0 : errno;
}

// Makes all parent directories of `path`; existing ones stay as they are. Returns 0, or the errno
// of the first directory that cannot be made: a later errno would only say that a parent is
// missing. `shared`: other users must be able to enter the directories.
int make_parents(const std::string& path, bool shared) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    const int error = shared                               ? make_one(parent, 0755)
                      : ::mkdir(parent.c_str(), 0755) == 0 ? 0
                                                           : errno;
    if (error != 0 && error != EEXIST) return error;
  }
  return 0;
}

// Whether `group` is the group that systems make for each user, with the user's name.
bool is_group_of_user_alone(gid_t group) {
  if (group != ::getegid()) return false;
  const passwd* const user = ::getpwuid(::geteuid());
  const std::string name = user ? user->pw_name : "";
  const struct group* const found = ::getgrgid(group);
  return found && !name.empty() && name == found->gr_name && found->gr_mem[0] == nullptr;
}

Result<void> check_own_step(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return fail_errno("cannot look at " + path, errno);
  const bool sticky = (info.st_mode & S_ISVTX) != 0;
  const bool group = (info.st_mode & S_IWGRP) != 0 && !is_group_of_user_alone(info.st_gid);
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return fail(Code::kDenied, fmt::format("{} is user {}'s, who could put another file there: "
                                           "name a file in a folder of your own",
                                           path, info.st_uid));
  }
  if (!sticky && (group || (info.st_mode & S_IWOTH) != 0)) {
    return fail(Code::kDenied, fmt::format("others may write to {}, and could put another file "
                                           "there: name a file in a folder of your own, or run "
                                           "`chmod go-w {}`",
                                           path, path));
  }
  return {};
}

}  // namespace

Result<void> check_own_place(const std::string& folder) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::canonical(folder, error);
  if (error) return fail_errno("cannot look at " + folder, error.value());
  for (;; at = at.parent_path()) {
    GPUROTA_TRY(check_own_step(at.string()));
    if (at == at.root_path()) return {};
  }
}

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (path.empty() || path.front() != '/') {
    return fail(Code::kInvalid, fmt::format("the directory '{}' must be an absolute path", path));
  }
  int error = make_one(path, mode);
  if (error == ENOENT) {
    error = make_parents(path, (mode & S_IRWXO) != 0);
    if (error == 0) error = make_one(path, mode);
  }
  struct stat info {};
  if (error != 0 && ::lstat(path.c_str(), &info) != 0) {
    auto failed = fail_errno("cannot make the directory " + path, error);
    failed.value().message += "; choose another";
    return failed;
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
    return fail(Code::kDenied, fmt::format("{} exists, but is not a directory", path));
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
