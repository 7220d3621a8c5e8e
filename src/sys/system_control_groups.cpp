#include "sys/system_control_groups.h"

#include "base/fd.h"
#include "sys/device_program.h"
#include "sys/proc_files.h"

#include <fmt/core.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::sys {

SystemControlGroups::~SystemControlGroups() {
  worker_.reset();
  for (const std::string& group : leaving_) (void)remove_cgroup(group);
}

std::string SystemControlGroups::of(pid_t pid) {
  const auto text = read_whole(fmt::format("/proc/{}/cgroup", pid), 65536);
  return mount_ && text ? cgroup_directory(*mount_, *text) : "";
}

bool SystemControlGroups::is_made_by_root(const std::string& group) {
  return sys::is_made_by_root(group);
}

Result<std::string> SystemControlGroups::make_below(pid_t pid, const std::string& name) {
  const std::string parent = of(pid);
  if (!parent.empty()) return make_cgroup(parent, name);
  if (!mount_) return fail(Code::kUnavailable, "no cgroup v2 is mounted");
  return fail(Code::kUnavailable, fmt::format("process {} is in no visible control group", pid));
}

void SystemControlGroups::enter(const std::string& group, pid_t pid,
                                std::function<void(const Result<void>&)> done) {
  // The number is another process's as soon as this one has been reaped.
  const auto process = std::make_shared<Fd>(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!*process) return done(fail_errno(fmt::format("cannot hold process {}", pid), errno));
  if (!worker_) worker_.emplace(loop_, "cgroups");
  ++moving_;
  worker_->run([group, pid, process] { return enter_cgroup(group, pid, process->get()); },
               [this, done = std::move(done)](const Result<void>& moved) {
                 --moving_;
                 done(moved);
               });
}

Result<void> SystemControlGroups::fence(const std::string& group, const DeviceFences& fences) {
  return set_device_program(group, fences);
}

std::string SystemControlGroups::find(const std::vector<std::string>& groups) {
  for (const std::string& group : groups) {
    struct stat info {};
    const bool exists = ::lstat(group.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (exists && is_closed(group.substr(0, group.rfind('/')))) return group;
  }
  return "";
}

std::vector<std::string> SystemControlGroups::search(
    const std::string& group, const std::function<ports::GroupStep(std::string_view name)>& step) {
  return search_cgroups(group, step);
}

Result<std::vector<pid_t>> SystemControlGroups::members(const std::string& group) {
  return read_cgroup_members(group);
}

Result<void> SystemControlGroups::kill(const std::string& group) { return kill_cgroup(group); }

void SystemControlGroups::remove(const std::string& group,
                                 std::function<void(const Result<void>&)> done) {
  if (moving_ == 0) return done(remove_cgroup(group));
  leaving_.insert(group);
  worker_->run([group] { return remove_cgroup(group); },
               [this, group, done = std::move(done)](const Result<void>& removed) {
                 leaving_.erase(group);
                 done(removed);
               });
}

}  // namespace gpurota::sys
