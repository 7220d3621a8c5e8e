#include "keeper/launcher.h"

#include "base/close_from.h"
#include "base/log.h"
#include "base/program_signals.h"
#include "base/read_all.h"
#include "base/text.h"
#include "keeper/log_fd.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

// The file with systemd-run's error message.
constexpr const char* kComplaintFile = "complaint";

Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return fail_errno("cannot make " + path, errno);
}

Result<Fd> open_directory(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno("cannot open " + path, errno);
  return fd;
}

Result<void> write_file(int directory, const char* name, const std::string& text) {
  const Fd fd(
      ::openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail_errno(fmt::format("cannot write the {} of a job", name), errno);
  }
  return {};
}

// Moves this process into a control group. Between fork and exec: takes no memory.
void enter(const char* members) {
  const int fd = ::open(members, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, "0", 1);
  ::close(fd);
}

// Forks a child that begins in the new control group `cgroup`; in the group of this process if
// `cgroup` is empty or cannot be made. No move where the kernel can do without (Linux 5.7): a move
// keeps every fork of the machine waiting, for up to tens of milliseconds. The child may only make
// system calls until it executes a program.
pid_t fork_in(const std::string& cgroup) {
  if (cgroup.empty() || ::mkdir(cgroup.c_str(), 0755) != 0) return ::fork();
  if (const Fd group(::open(cgroup.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); group) {
    clone_args wanted = {};
    wanted.flags = CLONE_INTO_CGROUP;
    wanted.exit_signal = SIGCHLD;
    wanted.cgroup = static_cast<std::uint64_t>(group.get());
    const long pid = ::syscall(SYS_clone3, &wanted, sizeof wanted);
    if (pid >= 0) return static_cast<pid_t>(pid);
  }
  const std::string members = cgroup + "/cgroup.procs";
  const pid_t pid = ::fork();
  if (pid == 0) enter(members.c_str());
  return pid;
}

Result<std::string> read_report_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno("the keeper of a job left no report", errno);
  auto text = read_all(fd.get(), 8192);
  if (!text) return fail_errno("cannot read the report of a job", errno);
  return std::move(*text);
}

}  // namespace

std::string Launcher::place_of(std::uint64_t job) const {
  return fmt::format("{}/{}", directory_, job);
}

Result<pid_t> Launcher::start(std::uint64_t job, const jobs::KeeperOrders& orders,
                              const std::string& cgroup) {
  GPUROTA_TRY(make_directory(directory_));
  const std::string place = place_of(job);
  GPUROTA_TRY(make_directory(place));
  GPUROTA_ASSIGN_OR_RETURN(const Fd directory, open_directory(place));
  for (const char* name : {jobs::kReportFile, kComplaintFile})
    (void)::unlinkat(directory.get(), name, 0);
  GPUROTA_TRY(write_file(directory.get(), jobs::kOrdersFile, encode(orders)));
  const std::vector<std::string> words = command_for(job, orders.user);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork_in(cgroup);
  if (pid < 0) return fail_errno("cannot fork", errno);
  if (pid == 0) {
    // A session of its own: the job gets no signals of the daemon's terminal.
    (void)::setsid();
    const int nothing = ::open("/dev/null", O_RDWR);
    // Made here, since a new file can take the file system milliseconds.
    const int complaint =
        ::openat(directory.get(), kComplaintFile, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
    for (const int fd : {0, 1, 2}) (void)::dup2(nothing, fd);
    if (complaint >= 0) (void)::dup2(complaint, 2);
    set_signals(ProgramSignals::none());
    // The job gets no files that a library of the daemon has opened.
    close_from(3);
    (void)::execv((systemd_run_.empty() ? program_ : systemd_run_).c_str(), argv.data());
    ::_exit(127);
  }
  return pid;
}

std::vector<std::string> Launcher::command_for(std::uint64_t job, const std::string& user) const {
  const std::string place = place_of(job);
  if (systemd_run_.empty()) return {"gpurota-keeper", place};
  // A unit of an earlier run may still exist.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto run = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return {
      "systemd-run", "--quiet", "--collect", "--no-ask-password",
      fmt::format("--unit=gpurota-{}-{}-{}.service", kind_, job, run),
      // Everybody can list units, so the description names the owner and not the command.
      fmt::format("--description=gpurota: a {} of {}", kind_, user), "--slice=gpurota-jobs.slice",
      // The keeper notifies systemd when it has its lock.
      "--service-type=notify",
      // The cgroup of the job's lease is made below the unit's own.
      "--property=Delegate=yes",
      // The keeper passes on the request to end; systemd kills what is left.
      "--property=KillMode=mixed", "--property=TimeoutStopSec=30s",
      // After the kernel kills a process for lack of memory, the unit continues with the others.
      "--property=OOMPolicy=continue",
      // At shutdown the daemon stops first, so that it does not count the jobs as ended.
      "--property=Before=gpurotad.service", "--", program_, place};
}

void Launcher::clear(std::uint64_t job) {
  if (!make_directory(directory_) || !make_directory(place_of(job))) return;
  const auto directory = open_directory(place_of(job));
  if (!directory) return;
  (void)::unlinkat(directory->get(), jobs::kReportFile, 0);
  const Fd lock(::openat(directory->get(), jobs::kLockFile, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!lock) return;
  // If the file cannot be written (the disk is full), began() returns true: a start that was only
  // recorded then counts as a run whose end nobody saw.
  (void)!::write(lock.get(), jobs::kUnbegun, std::strlen(jobs::kUnbegun));
}

bool Launcher::began(std::uint64_t job) const {
  const std::string place = place_of(job) + "/";
  if (::access((place + jobs::kOldUnbegunFile).c_str(), F_OK) == 0) return false;
  struct stat lock = {};
  const bool is_there = ::lstat((place + jobs::kLockFile).c_str(), &lock) == 0;
  return is_there ? lock.st_size == 0 : errno != ENOENT;
}

void Launcher::withdraw(std::uint64_t job) {
  (void)::unlink((place_of(job) + "/" + jobs::kOrdersFile).c_str());
}

Result<std::optional<pid_t>> Launcher::find_holder(std::uint64_t job) const {
  const std::string path = place_of(job) + "/" + jobs::kLockFile;
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (!fd || ::fcntl(fd.get(), F_GETLK, &lock) != 0) {
    return fail_errno("cannot look at who holds " + path, errno);
  }
  if (lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid;
}

bool Launcher::is_held_by(std::uint64_t job, pid_t keeper) const {
  const auto holder = find_holder(job);
  return holder && *holder == keeper;
}

void Launcher::collect(pid_t keeper) { (void)::waitpid(keeper, nullptr, WNOHANG); }

Result<jobs::KeeperReport> Launcher::read_report(std::uint64_t job) const {
  const auto text = read_report_file(place_of(job) + "/" + jobs::kReportFile);
  if (text) return jobs::decode_report(*text);
  auto complaint = read_report_file(place_of(job) + "/" + kComplaintFile).value_or("");
  while (!complaint.empty() && complaint.back() == '\n') complaint.pop_back();
  if (complaint.empty()) return tl::unexpected(text.error());
  return jobs::KeeperReport{false, 0, "systemd did not start it: " + complaint};
}

Result<jobs::LogPart> read_log(const std::string& folder, std::optional<jobs::LogCursor> from,
                               std::size_t most) {
  const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return jobs::LogPart{};
  GPUROTA_ASSIGN_OR_RETURN(LogFd a, LogFd::open(directory.get(), jobs::kLogFiles[0]));
  GPUROTA_ASSIGN_OR_RETURN(LogFd b, LogFd::open(directory.get(), jobs::kLogFiles[1]));
  return from ? jobs::read_log_from(a, b, *from, most) : jobs::read_log(a, b, most);
}

std::string Launcher::last_line(std::uint64_t job) const {
  constexpr std::size_t kEnough = 400;
  const auto log = read_log(log_folder(job), std::nullopt, kEnough);
  if (!log) return "";
  std::string_view text = log->text;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  text.remove_prefix(text.rfind('\n') + 1);
  return display_text(text, 300);
}

Result<void> Launcher::forget(std::uint64_t job) {
  const std::string place = place_of(job);
  const Fd directory(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!directory) return {};
  for (const char* name :
       {jobs::kOrdersFile, jobs::kReportFile, "report.new", kComplaintFile, jobs::kLockFile,
        jobs::kLogFiles[0], jobs::kLogFiles[1], jobs::kOldUnbegunFile}) {
    (void)::unlinkat(directory.get(), name, 0);
  }
  if (::rmdir(place.c_str()) != 0) return fail_errno("cannot remove " + place, errno);
  return {};
}

void Launcher::remove_leftovers(const std::function<bool(std::uint64_t job)>& known) {
  std::vector<std::uint64_t> unknown;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    std::uint64_t job = 0;
    const auto [behind, wrong] = std::from_chars(name.data(), name.data() + name.size(), job);
    if (wrong != std::errc() || behind != name.data() + name.size() || known(job)) continue;
    const auto holder = find_holder(job);
    if (holder && !*holder) unknown.push_back(job);
  }
  for (const std::uint64_t job : unknown) {
    if (const auto gone = forget(job); !gone) {
      log::warn("cannot remove what a job left", {{"error", gone.error().message}});
    }
  }
}

}  // namespace gpurota::keeper
