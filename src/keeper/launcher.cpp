#include "keeper/launcher.h"

#include "keeper/log_fd.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

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

}  // namespace

std::string Launcher::place_of(std::uint64_t job) const {
  return fmt::format("{}/{}", directory_, job);
}

Result<pid_t> Launcher::start(std::uint64_t job, const jobs::KeeperOrders& orders) {
  GPUROTA_TRY(make_directory(directory_));
  const std::string place = place_of(job);
  GPUROTA_TRY(make_directory(place));
  GPUROTA_ASSIGN_OR_RETURN(const Fd directory, open_directory(place));
  (void)::unlinkat(directory.get(), jobs::kReportFile, 0);
  GPUROTA_TRY(write_file(directory.get(), jobs::kOrdersFile, encode(orders)));
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot fork", errno);
  if (pid == 0) {
    // A session of its own: what a terminal sends the daemon is not for the job.
    (void)::setsid();
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) (void)::dup2(nothing, fd);
    // Whatever a library of the daemon's has opened is not for the job.
    (void)::close_range(3, ~0U, 0);
    (void)::execl(program_.c_str(), "gpurota-keeper", place.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  return pid;
}

std::optional<pid_t> Launcher::holder(std::uint64_t job) const {
  const std::string path = place_of(job) + "/" + jobs::kLockFile;
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (!fd || ::fcntl(fd.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid;
}

void Launcher::collect(pid_t keeper) { (void)::waitpid(keeper, nullptr, WNOHANG); }

Result<jobs::KeeperReport> Launcher::read_report(std::uint64_t job) const {
  const std::string path = place_of(job) + "/" + jobs::kReportFile;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno("the keeper of a job left no report", errno);
  std::string text(8192, '\0');
  const ssize_t count = ::read(fd.get(), text.data(), text.size());
  if (count < 0) return fail_errno("cannot read the report of a job", errno);
  text.resize(static_cast<std::size_t>(count));
  return jobs::decode_report(text);
}

Result<std::string> Launcher::read_log(std::uint64_t job, std::size_t most) const {
  const Fd directory(::open(place_of(job).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return std::string();
  GPUROTA_ASSIGN_OR_RETURN(LogFd a, LogFd::open(directory.get(), jobs::kLogFiles[0]));
  GPUROTA_ASSIGN_OR_RETURN(LogFd b, LogFd::open(directory.get(), jobs::kLogFiles[1]));
  return jobs::read_log(a, b, most);
}

Result<void> Launcher::forget(std::uint64_t job) {
  const std::string place = place_of(job);
  const Fd directory(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!directory) return {};
  for (const char* name : {jobs::kOrdersFile, jobs::kReportFile, "report.new", jobs::kLockFile,
                           jobs::kLogFiles[0], jobs::kLogFiles[1]}) {
    (void)::unlinkat(directory.get(), name, 0);
  }
  if (::rmdir(place.c_str()) != 0) return fail_errno("cannot remove " + place, errno);
  return {};
}

}  // namespace gpurota::keeper
