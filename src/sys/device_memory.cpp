#include "sys/device_memory.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

constexpr std::string_view kHead = "gpurota device files 1";
constexpr std::size_t kLargestFile = std::size_t{4} << 20;

}  // namespace

Result<DeviceFiles> read_device_memory(const std::string& path, const std::string& boot_id) {
  DeviceFiles files;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return files;
  if (!fd) return fail_errno("cannot open " + path, errno);
  const auto text = read_all(fd.get(), kLargestFile);
  if (!text) return fail_errno("cannot read " + path, errno);
  std::istringstream lines(*text);
  std::string head, boot;
  std::getline(lines, head);
  if (head != kHead) {
    return fail(
        Code::kInvalid,
        fmt::format("{} is damaged, so how the device files were is not known: set their modes "
                    "by hand (nvidia-modprobe, or a reboot), remove it, and restart gpurotad",
                    path));
  }
  std::getline(lines, boot);
  if (boot != boot_id) return files;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    DeviceFile file;
    if (words >> name >> file.inode >> file.owner >> file.acl) files.emplace(name, file);
  }
  return files;
}

Result<void> write_device_memory(const std::string& path, const std::string& boot_id,
                                 const DeviceFiles& files) {
  std::string text = fmt::format("{}\n{}\n", kHead, boot_id);
  for (const auto& [name, file] : files) {
    text += fmt::format("{} {} {} {}\n", name, file.inode, file.owner, file.acl);
  }
  return replace_file(path, text, 0600);
}

Result<void> remove_device_memory(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail_errno("cannot remove " + path, errno);
  }
  return settle_folder_of(path);
}

std::map<std::string, std::string> restore_device_files(const std::string& root,
                                                        DeviceFiles& files) {
  std::map<std::string, std::string> problems;
  std::erase_if(files, [&](const auto& entry) {
    const auto& [name, file] = entry;
    const auto set = set_device_acl(root, name, file.inode, file.acl);
    if (set || set.error().code == Code::kGone) return true;
    problems[name] = set.error().message;
    return false;
  });
  return problems;
}

}  // namespace gpurota::sys
