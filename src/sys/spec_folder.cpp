#include "sys/spec_folder.h"

#include "base/directory.h"
#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/acl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 20;

using Acl = std::unique_ptr<void, int (*)(void*)>;
using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Result<void> let_read(int fd, uid_t reader) {
  const std::string text =
      fmt::format("user::rw-,user:{}:r--,group::---,mask::r--,other::---", reader);
  const Acl list(::acl_from_text(text.c_str()), &::acl_free);
  if (!list || ::acl_set_fd(fd, static_cast<acl_t>(list.get())) != 0) {
    return fail_errno(fmt::format("cannot give user {} the right to read", reader), errno);
  }
  return {};
}

}  // namespace

Result<void> make_spec_folder(const std::string& path) {
  const bool was_there = ::access(path.c_str(), F_OK) == 0;
  GPUROTA_TRY(make_directory(path, 0755));
  // mkdir() applies the umask: set the mode again.
  if (!was_there && ::chmod(path.c_str(), 0755) != 0) {
    return fail_errno("cannot change the mode of " + path, errno);
  }
  struct statfs system {};
  if (::statfs(path.c_str(), &system) != 0) return fail_errno("cannot look at " + path, errno);
  if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC) {
    return fail(Code::kUnavailable,
                path +
                    " is on a disk, which gpurotad does not wait for: name a folder in memory, "
                    "such as /run/cdi");
  }
  return {};
}

Result<void> write_spec(const std::string& path, const std::string& text,
                        std::optional<uid_t> reader) {
  if (!reader) return replace_file(path, text, 0644);
  return replace_file(path, text, 0600, [&](int fd) -> Result<void> {
    return *reader == ::geteuid() ? Result<void>() : let_read(fd, *reader);
  });
}

Result<std::map<std::string, std::string>> read_specs(const std::string& folder,
                                                      const std::string& prefix) {
  std::map<std::string, std::string> specs;
  const Folder names(::opendir(folder.c_str()), &::closedir);
  if (!names && errno == ENOENT) return specs;
  if (!names) return fail_errno("cannot read " + folder, errno);
  while (const dirent* const entry = ::readdir(names.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const std::string path = folder + "/" + name;
    if (name.ends_with(".new")) {
      (void)::unlink(path.c_str());
      continue;
    }
    const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const auto text = file ? read_all(file.get(), kLargest) : std::nullopt;
    if (text) specs.emplace(name, *text);
  }
  return specs;
}

}  // namespace gpurota::sys
