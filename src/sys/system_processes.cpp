#include "sys/system_processes.h"

#include "base/proc_stat.h"
#include "base/steps.h"
#include "sys/proc_files.h"
#include "sys/system_accounts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <sstream>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using ports::EventLoop;
using ports::ProcessInfo;

tl::unexpected<Error> process_ended(pid_t pid) {
  return fail(Code::kGone, fmt::format("process {} has ended", pid));
}

tl::unexpected<Error> out_of_descriptors(int error_number) {
  return fail(
      Code::kLimit,
      "gpurotad is out of descriptors: try again, or let it have more (LimitNOFILE= of its unit)",
      error_number);
}

// The error for a process that could not be read; `why` is errno. With hidepid, a hidden process
// and an ended one look the same in /proc. A shortage of descriptors says nothing about the
// process.
tl::unexpected<Error> unreadable(pid_t pid, int why) {
  if (is_shortage(why)) return out_of_descriptors(why);
  if (::kill(pid, 0) == 0 || errno == EPERM) {
    return fail(Code::kDenied,
                fmt::format("process {} is hidden (/proc is mounted with hidepid)", pid));
  }
  return process_ended(pid);
}

// nullopt: errno has the reason, if the system gave one.
std::optional<ProcessInfo> read_process(pid_t pid) {
  errno = 0;
  const auto stat = read_proc_stat(pid);
  const auto uids = stat ? read_proc_uids(pid) : std::nullopt;
  if (!stat || !uids) return std::nullopt;
  ProcessInfo info;
  info.pid = pid;
  info.parent = stat->parent;
  info.uid = uids->real;
  info.start_ticks = stat->start_ticks;
  info.zombie = stat->state == 'Z' || stat->state == 'X';
  return info;
}

}  // namespace

// A pidfd, shared by a handle and the first watcher of its process; closed when the last of the two
// is destroyed.
struct Pidfd {
  Fd fd;
  std::shared_ptr<void> admission;
  bool watched = false;  // the loop can watch a descriptor only once
};

namespace {

// Fires once, even if destroyed in its own callback.
class Death final : public EventLoop::Source {
 public:
  static Result<EventLoop::SourcePtr> make(EventLoop& loop, std::shared_ptr<Pidfd> pidfd,
                                           std::function<void()> callback) {
    auto death = std::make_unique<Death>();
    if (pidfd->watched) {
      Fd fd(::fcntl(pidfd->fd.get(), F_DUPFD_CLOEXEC, 3));
      if (!fd) return fail_errno("cannot duplicate a pidfd", errno);
      pidfd = std::make_shared<Pidfd>(Pidfd{std::move(fd), pidfd->admission});
    }
    death->pidfd_ = std::move(pidfd);
    auto source = std::make_shared<EventLoop::SourcePtr>();
    GPUROTA_ASSIGN_OR_RETURN(
        *source,
        loop.watch_fd(death->pidfd_->fd.get(), false, ports::Urgency::kSafety,
                      [source = std::weak_ptr(source), callback = std::move(callback)](unsigned) {
                        if (const auto held = source.lock()) held->reset();
                        callback();
                      }));
    death->source_ = std::move(source);
    death->pidfd_->watched = true;
    return death;
  }

  ~Death() override {
    if (!source_) return;
    source_->reset();
    pidfd_->watched = false;
  }

 private:
  std::shared_ptr<Pidfd> pidfd_;
  std::shared_ptr<EventLoop::SourcePtr> source_;
};

// The most children of a process that are looked up by number: each takes 30 us.
constexpr std::ptrdiff_t kMostAsked = 64;

// The pids of a process, from our pid namespace to its own; empty if it has ended.
std::vector<pid_t> numbers_of(pid_t pid) {
  std::vector<pid_t> numbers;
  std::istringstream status(read_whole(fmt::format("/proc/{}/status", pid), 65536).value_or(""));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key) || key != "NSpid:") continue;
    for (pid_t number = 0; words >> number;) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

class SystemProcesses::SystemHandle final : public Handle {
 public:
  SystemHandle(pid_t pid, std::shared_ptr<Pidfd> pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid() const override { return pid_; }
  const std::shared_ptr<Pidfd>& pidfd() const { return pidfd_; }
  bool alive() const override {
    pollfd ended{pidfd_->fd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 0;
  }
  Result<void> send_signal(int signal) override {
    if (::syscall(SYS_pidfd_send_signal, pidfd_->fd.get(), signal, nullptr, 0) == 0 ||
        errno == ESRCH) {
      return {};
    }
    return fail_errno(fmt::format("cannot send signal {} to process {}", signal, pid_), errno);
  }

 private:
  pid_t pid_;
  std::shared_ptr<Pidfd> pidfd_;
};

SystemProcesses::SystemProcesses(EventLoop& loop)
    : loop_(loop), names_(loop, std::make_shared<SystemAccounts>()), commands_(loop) {
  (void)read_machine();
}

Result<void> SystemProcesses::read_machine() {
  const auto mountinfo = read_whole("/proc/self/mountinfo", 16 << 20);
  if (!mountinfo && is_shortage(errno)) return fail_errno("cannot read the mounts", errno);
  if (mountinfo) cgroups_.set_mount(parse_cgroup_mount(*mountinfo));
  if (boot_id().empty() && is_shortage(errno))
    return fail_errno("cannot read the boot's id", errno);
  return {};
}

Result<ports::Processes::HandlePtr> SystemProcesses::open(const ports::ProcessId& process) {
  const pid_t pid = process.pid;
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    // ENOENT and EINVAL: the pid of a thread, or not a valid pid.
    if (errno == ESRCH || errno == EINVAL || errno == ENOENT) return process_ended(pid);
    if (errno == ENOSYS || errno == EPERM) {
      return fail(Code::kUnavailable,
                  "the kernel, or this container's seccomp profile, has no "
                  "pidfd_open: gpurota needs Linux 5.3 or newer",
                  errno);
    }
    if (errno == EMFILE || errno == ENFILE) return out_of_descriptors(errno);
    return fail_errno(fmt::format("cannot open process {}", pid), errno);
  }
  // Checked after opening: if the start time still matches, the pidfd refers to that process.
  const auto info = read_process(pid);
  if (!info) return unreadable(pid, errno);
  if (info->start_ticks != process.start_ticks) return process_ended(pid);
  auto shared = std::make_shared<Pidfd>(Pidfd{std::move(pidfd), nullptr});
  if (admission_) {
    GPUROTA_ASSIGN_OR_RETURN(shared->admission, admission_(info->uid));
  }
  return std::make_unique<SystemHandle>(pid, std::move(shared));
}

Result<EventLoop::SourcePtr> SystemProcesses::on_death(Handle& process,
                                                       std::function<void()> callback) {
  return Death::make(loop_, static_cast<SystemHandle&>(process).pidfd(), std::move(callback));
}

Result<ProcessInfo> SystemProcesses::read_info(pid_t pid) {
  steps::add(steps::Kind::kProcesses);
  if (const auto info = read_process(pid)) return *info;
  return unreadable(pid, errno);
}

Result<std::vector<std::string>> SystemProcesses::command_of(pid_t pid) {
  const auto process = read_process(pid);
  if (!process) return unreadable(pid, errno);
  return commands_.of(*process);
}

// Searches the children of the parent's first thread; without other threads these are all its
// children. The kernel lists the oldest child first, and the wanted child has just been made. Only
// the newest children are examined, because a process may have ten thousand.
Result<pid_t> SystemProcesses::child_called(const ports::ProcessId& parent, pid_t number) {
  const std::size_t depth = numbers_of(parent.pid).size();
  if (depth <= 1) return number;
  std::istringstream text(
      read_whole(fmt::format("/proc/{0}/task/{0}/children", parent.pid)).value_or(""));
  std::vector<pid_t> children;
  for (pid_t child = 0; text >> child;) children.push_back(child);
  const auto last = children.rbegin() + std::min<std::ptrdiff_t>(kMostAsked, children.size());
  for (auto child = children.rbegin(); child != last; ++child) {
    const std::vector<pid_t> numbers = numbers_of(*child);
    if (numbers.size() >= depth && numbers[depth - 1] == number) return *child;
  }
  return fail(Code::kGone, fmt::format("process {} has not made a child of late that it calls {}",
                                       parent.pid, number));
}

bool SystemProcesses::is_stopped(pid_t pid) {
  const auto stat = read_proc_stat(pid);
  if (!stat) return false;
  if (stat->state == 'T' || stat->state == 't') return true;
  // In a frozen group, all groups below it also report "frozen 1".
  const std::string group = cgroups_.of(pid);
  const auto events = group.empty() ? std::nullopt : read_whole(group + "/cgroup.events", 4096);
  return events && events->find("frozen 1") != std::string::npos;
}

Result<Bytes> SystemProcesses::private_memory(pid_t pid) {
  const auto text = read_whole(fmt::format("/proc/{}/status", pid), 65536);
  if (!text && is_shortage(errno)) return out_of_descriptors(errno);
  if (!text) return fail(Code::kGone, fmt::format("process {} has ended", pid));
  std::istringstream status(*text);
  Bytes sum;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kib = 0;
    if (words >> key >> kib && (key == "RssAnon:" || key == "VmSwap:")) sum += Bytes(kib << 10);
  }
  return sum;
}

bool SystemProcesses::handles_signal(pid_t pid, int signal) {
  const auto status = read_whole(fmt::format("/proc/{}/status", pid), 16384);
  if (!status) return false;
  for (const std::string_view line : {"\nSigCgt:\t", "\nSigBlk:\t"}) {
    const std::size_t at = status->find(line);
    if (at == std::string::npos) continue;
    std::uint64_t mask = 0;
    const char* const digits = status->data() + at + line.size();
    std::from_chars(digits, status->data() + status->size(), mask, 16);
    if ((mask >> (signal - 1)) & 1) return true;
  }
  return false;
}

Result<std::vector<ProcessInfo>> SystemProcesses::read_all() {
  std::vector<ProcessInfo> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  if (!proc) return fail_errno("cannot read /proc", errno);
  for (;;) {
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const auto info = read_process(pid);
    if (info) all.push_back(*info);
    if (!info && is_shortage(errno)) return out_of_descriptors(errno);
  }
  return all;
}

std::string SystemProcesses::boot_id() {
  if (boot_id_.empty()) {
    errno = 0;
    boot_id_ = read_whole("/proc/sys/kernel/random/boot_id", 100).value_or("");
    while (!boot_id_.empty() && boot_id_.back() == '\n') boot_id_.pop_back();
  }
  return boot_id_;
}

std::string SystemProcesses::user_name(uid_t uid) { return names_.name_of(uid); }

uid_t SystemProcesses::account_of(uid_t uid) { return names_.owner_of(uid); }

std::optional<uid_t> SystemProcesses::namespace_maker(pid_t pid) {
  constexpr int kDeepest = 40;  // the kernel allows 33
  struct stat own {};
  if (::stat("/proc/self/ns/user", &own) != 0) return std::nullopt;
  Fd space(::open(fmt::format("/proc/{}/ns/user", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::optional<uid_t> maker;
  for (int depth = 0; space && depth < kDeepest; ++depth) {
    struct stat about {};
    if (::fstat(space.get(), &about) != 0 || about.st_ino == own.st_ino) break;
    uid_t uid = 0;
    if (::ioctl(space.get(), NS_GET_OWNER_UID, &uid) != 0) break;
    maker = uid;
    space = Fd(::ioctl(space.get(), NS_GET_PARENT));
  }
  return maker;
}

std::string SystemProcesses::executable_of(pid_t pid) {
  char path[4096];
  const ssize_t size = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), path, sizeof path);
  if (size <= 0) return {};
  return std::string(without_deleted({path, static_cast<std::size_t>(size)}));
}

}  // namespace gpurota::sys
