#include "sys/device_files.h"

#include "base/read_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>

#include <acl/libacl.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/acl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

constexpr const char* kCapabilities = "nvidia-caps";
constexpr std::size_t kLargestText = std::size_t{4} << 20;

using Acl = std::unique_ptr<void, int (*)(void*)>;
using Text = std::unique_ptr<char, int (*)(void*)>;
using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// A handle that gives access to the file's ACL without opening the device.
Fd open_handle(const std::string& path) {
  return Fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}
std::string path_of(const Fd& handle) { return fmt::format("/proc/self/fd/{}", handle.get()); }

Result<std::string> read_acl(const Fd& handle, const std::string& path) {
  const Acl acl(::acl_get_file(path_of(handle).c_str(), ACL_TYPE_ACCESS), &::acl_free);
  if (!acl) return fail_errno("cannot read who may open " + path, errno);
  const Text text(::acl_to_any_text(static_cast<acl_t>(acl.get()), nullptr, ',', TEXT_NUMERIC_IDS),
                  &::acl_free);
  if (!text) return fail_errno("cannot read who may open " + path, errno);
  return std::string(text.get());
}

// The names in a folder; empty if there is no such folder.
Result<std::vector<std::string>> read_names(const std::string& path) {
  std::vector<std::string> names;
  const Folder folder(::opendir(path.c_str()), &::closedir);
  if (!folder && errno == ENOENT) return names;
  if (!folder) return fail_errno("cannot read " + path, errno);
  while (const dirent* const entry = ::readdir(folder.get())) names.emplace_back(entry->d_name);
  return names;
}

Result<void> add_file(const std::string& root, const std::string& name, DeviceFiles& files) {
  const std::string path = root + "/dev/" + name;
  const Fd handle = open_handle(path);
  struct stat info {};
  if (!handle || ::fstat(handle.get(), &info) != 0) return {};  // removed meanwhile
  if (!S_ISCHR(info.st_mode) && (root.empty() || !S_ISREG(info.st_mode))) return {};
  GPUROTA_ASSIGN_OR_RETURN(std::string acl, read_acl(handle, path));
  DeviceFile file{info.st_ino, info.st_uid, std::move(acl)};
  if (S_ISCHR(info.st_mode)) file.number = DeviceNumber{major(info.st_rdev), minor(info.st_rdev)};
  files.emplace(name, std::move(file));
  return {};
}

std::string read_text(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd ? read_all(fd.get(), kLargestText).value_or("") : std::string();
}

// The `names` that a process has open, from the links of its descriptors: does not touch the files,
// as a file may hang.
std::set<std::string> read_open_files(const std::string& process,
                                      const std::map<std::string, std::string>& names) {
  std::set<std::string> open;
  const Folder folder(::opendir((process + "/fd").c_str()), &::closedir);
  if (!folder) return open;
  while (const dirent* const entry = ::readdir(folder.get())) {
    char place[512];
    const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, place, sizeof place);
    if (size <= 0) continue;
    const auto found = names.find(std::string(place, static_cast<std::size_t>(size)));
    if (found != names.end()) open.insert(found->second);
  }
  return open;
}

// Reads the effective user and all groups from the status of a process.
void read_identity(const std::string& process, DeviceOpener& opener) {
  std::istringstream status(read_text(process + "/status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    uid_t real = 0, number = 0;
    words >> key;
    if (key == "Uid:") words >> real >> opener.uid;
    if (key == "Gid:" && words >> real >> number) opener.groups.insert(number);
    if (key == "Groups:") {
      while (words >> number) opener.groups.insert(number);
    }
  }
}

}  // namespace

Result<DeviceFiles> read_device_files(const std::string& root) {
  DeviceFiles files;
  GPUROTA_ASSIGN_OR_RETURN(const auto devices, read_names(root + "/dev"));
  for (const std::string& name : devices) {
    if (is_numbered(name, "nvidia")) GPUROTA_TRY(add_file(root, name, files));
  }
  GPUROTA_ASSIGN_OR_RETURN(const auto capabilities, read_names(root + "/dev/" + kCapabilities));
  for (const std::string& name : capabilities) {
    if (!is_numbered(name, "nvidia-cap")) continue;
    GPUROTA_TRY(add_file(root, fmt::format("{}/{}", kCapabilities, name), files));
  }
  return files;
}

Result<void> set_device_acl(const std::string& root, const std::string& name, std::uint64_t inode,
                            const std::string& acl) {
  const std::string path = root + "/dev/" + name;
  const Acl list(::acl_from_text(acl.c_str()), &::acl_free);
  if (!list)
    return fail_errno(fmt::format("cannot take '{}' for who may open {}", acl, path), errno);
  const Fd handle = open_handle(path);
  struct stat info {};
  if (!handle && errno == ENOENT) return fail(Code::kGone, path + " is not there any more");
  if (!handle || ::fstat(handle.get(), &info) != 0)
    return fail_errno("cannot look at " + path, errno);
  if (info.st_ino != inode) return fail(Code::kGone, path + " was made anew");
  if (::acl_set_file(path_of(handle).c_str(), ACL_TYPE_ACCESS, static_cast<acl_t>(list.get())) !=
      0) {
    return fail_errno("cannot set who may open " + path, errno);
  }
  return {};
}

Result<Fd> watch_device_files(const std::string& root) {
  constexpr std::uint32_t kChanges = IN_ATTRIB | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR;
  Fd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch) return fail_errno("cannot watch device files", errno);
  const std::string devices = root + "/dev";
  if (::inotify_add_watch(watch.get(), devices.c_str(), kChanges) < 0) {
    return fail_errno("cannot watch " + devices, errno);
  }
  // The folder may be missing: a periodic scan finds it later.
  (void)::inotify_add_watch(watch.get(), (devices + "/" + kCapabilities).c_str(), kChanges);
  return watch;
}

void take_device_changes(int watch) {
  char events[4096];
  while (::read(watch, events, sizeof events) > 0) {
  }
}

std::string read_driver_params(const std::string& root) {
  return read_text(root + "/proc/driver/nvidia/params");
}

std::string read_mig_minors(const std::string& root) {
  return read_text(root + "/proc/driver/nvidia-caps/mig-minors");
}

std::vector<DeviceOpener> read_device_openers(const std::string& root,
                                              const std::set<std::string>& names) {
  std::map<std::string, std::string> paths;
  for (const std::string& name : names) paths.emplace(root + "/dev/" + name, name);
  std::vector<DeviceOpener> openers;
  const auto processes = read_names("/proc");
  if (!processes) return openers;
  for (const std::string& process : *processes) {
    DeviceOpener opener;
    const auto [end, error] =
        std::from_chars(process.data(), process.data() + process.size(), opener.pid);
    if (error != std::errc() || *end != '\0' || opener.pid == ::getpid()) continue;
    opener.files = read_open_files("/proc/" + process, paths);
    if (opener.files.empty()) continue;
    read_identity("/proc/" + process, opener);
    openers.push_back(std::move(opener));
  }
  return openers;
}

}  // namespace gpurota::sys
