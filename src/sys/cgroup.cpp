#include "sys/cgroup.h"

#include "base/directory.h"
#include "base/fd.h"
#include "sys/proc_files.h"

#include <fmt/core.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 3, value, 8).ptr == &text[i + 1] + 3) {
      plain.push_back(static_cast<char>(value));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool goes_up(std::string_view path) {
  for (const std::string_view part : split(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

Result<void> check_ours(const std::string& directory) {
  const std::size_t slash = directory.rfind('/');
  if (directory.empty() || directory.front() != '/' || goes_up(directory) ||
      directory.compare(slash + 1, std::string_view(ports::kCgroupPrefix).size(),
                        ports::kCgroupPrefix) != 0) {
    return fail(Code::kInternal, fmt::format("'{}' is not a control group of gpurota", directory));
  }
  return {};
}

// Whether there may be groups in this one: the kernel counts them as links of the folder.
bool has_groups(const std::string& group) {
  struct stat info {};
  return ::lstat(group.c_str(), &info) == 0 && info.st_nlink != 2;
}

int write_to(const std::string& path, const std::string& text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0) return errno;
  return 0;
}

// Directories below and including `directory`; each comes after its parent. May include directories
// that were removed meanwhile.
Result<std::vector<std::string>> subtree(const std::string& directory) {
  std::vector<std::string> all{directory};
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) all.push_back(at->path().string());
  }
  if (error && error.value() != ENOENT)
    return fail_errno("cannot read " + directory, error.value());
  return all;
}

}  // namespace

std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos || !line.substr(dash + 3).starts_with("cgroup2 ")) continue;
    const auto fields = split(line.substr(0, dash), ' ');
    if (fields.size() < 5) continue;
    return CgroupMount{unescape(fields[4]), unescape(fields[3])};
  }
  return std::nullopt;
}

std::string cgroup_directory(const CgroupMount& mount, std::string_view proc_cgroup) {
  for (std::string_view line : split(proc_cgroup, '\n')) {
    if (!line.starts_with("0::/")) continue;
    line.remove_prefix(3);
    if (goes_up(line) || goes_up(mount.root)) return "";
    if (mount.root != "/") {
      if (!line.starts_with(mount.root)) return "";
      line.remove_prefix(mount.root.size());
      if (!line.empty() && line.front() != '/') return "";
    }
    return line == "/" ? mount.point : mount.point + std::string(line);
  }
  return "";
}

// A group cannot be moved to another folder, so only a user who may write to the folder now can
// have made the group.
bool is_made_by_root(const std::string& group) {
  const std::size_t slash = group.rfind('/');
  if (slash == group.npos || goes_up(group)) return false;
  return check_directory(slash == 0 ? "/" : group.substr(0, slash), 0).has_value();
}

bool is_closed(const std::string& group) {
  const std::string& folder = group.empty() ? "/" : group;
  return !goes_up(folder) && (check_directory(folder, 0) || check_directory(folder, ::geteuid()));
}

std::vector<std::string> search_cgroups(
    const std::string& group, const std::function<ports::GroupStep(std::string_view name)>& step) {
  std::vector<std::string> found, entered{group};
  std::size_t names = 0;
  for (std::size_t i = 0; i < entered.size() && i < kMostGroupsSearched; ++i) {
    if (!is_closed(entered[i])) continue;
    std::error_code error;
    std::filesystem::directory_iterator at(entered[i], error);
    for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(at->symlink_status(ignored))) continue;
      if (++names > kMostNamesSearched) return found;
      const ports::GroupStep next = step(at->path().filename().native());
      if (next == ports::GroupStep::kFound) found.push_back(at->path().native());
      if (next == ports::GroupStep::kEnter && has_groups(at->path().native())) {
        entered.push_back(at->path().native());
      }
    }
  }
  return found;
}

Result<std::string> make_cgroup(const std::string& parent, const std::string& name) {
  const std::string directory = parent + "/" + name;
  GPUROTA_TRY(check_ours(directory));
  if (name.find('/') != name.npos || name.size() > 200) {
    return fail(Code::kInternal, fmt::format("'{}' cannot name a control group", name));
  }
  if (::mkdir(directory.c_str(), 0755) == 0) return directory;
  if (errno != EEXIST) {
    const int error_number = errno;
    return fail(Code::kUnavailable,
                fmt::format("cannot make a control group in {}: {}", parent,
                            std::generic_category().message(error_number)),
                error_number);
  }
  const auto members = read_cgroup_members(directory);
  if (!members || !members->empty()) {
    return fail(Code::kLimit, fmt::format("the control group {} is in use", directory), EEXIST);
  }
  return directory;
}

Result<void> enter_cgroup(const std::string& directory, pid_t pid, int process) {
  GPUROTA_TRY(check_ours(directory));
  const auto has_ended = [&] {
    pollfd end{process, POLLIN, 0};
    return ::poll(&end, 1, 0) != 0;
  };
  const auto gone = [&] { return fail(Code::kGone, fmt::format("process {} has ended", pid)); };
  if (has_ended()) return gone();
  const int error_number = write_to(directory + "/cgroup.procs", std::to_string(pid));
  if (error_number == ESRCH || has_ended()) return gone();
  if (error_number == 0) return {};
  const Code code = error_number == ENOENT ? Code::kGone : Code::kUnavailable;
  return fail(code,
              fmt::format("cannot move process {} into {}: {}", pid, directory,
                          std::generic_category().message(error_number)),
              error_number);
}

Result<std::vector<pid_t>> read_cgroup_members(const std::string& directory) {
  std::vector<pid_t> pids;
  GPUROTA_ASSIGN_OR_RETURN(const auto directories, subtree(directory));
  for (const std::string& each : directories) {
    const auto text = read_whole(each + "/cgroup.procs");
    if (!text && is_shortage(errno)) return fail_errno("cannot read the members of " + each, errno);
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n')) {
      pid_t pid = 0;  // stays 0 for a process outside our pid namespace
      std::from_chars(line.data(), line.data() + line.size(), pid);
      if (pid > 0) pids.push_back(pid);
    }
  }
  return pids;
}

Result<void> kill_cgroup(const std::string& directory) {
  GPUROTA_TRY(check_ours(directory));
  const int error_number = write_to(directory + "/cgroup.kill", "1");
  if (error_number == 0) return {};
  if (::access(directory.c_str(), F_OK) != 0) return {};
  if (error_number != ENOENT) return fail_errno("cannot kill " + directory, error_number);
  // Before Linux 5.14: kill each member, and repeat for members forked meanwhile.
  for (int round = 0; round < 20; ++round) {
    GPUROTA_ASSIGN_OR_RETURN(const auto members, read_cgroup_members(directory));
    if (members.empty()) return {};
    for (const pid_t pid : members) (void)::kill(pid, SIGKILL);
  }
  return {};
}

Result<void> remove_cgroup(const std::string& directory) {
  GPUROTA_TRY(check_ours(directory));
  GPUROTA_ASSIGN_OR_RETURN(const auto all, subtree(directory));
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    if (::rmdir(each->c_str()) != 0 && errno != ENOENT) {
      return fail_errno("cannot remove the control group " + *each, errno);
    }
  }
  return {};
}

}  // namespace gpurota::sys
