// gpurota-keeper DIR: runs beside one run of one job. gpurotad starts the keeper, and may stop and
// restart meanwhile. The keeper executes `gpurota run` as the job's owner, according to DIR/orders,
// and writes the output into the job's bounded log. At the end the keeper writes DIR/report: how
// the run ended.
//
// SIGTERM is passed on; SIGQUIT kills the run. Until the run begins SIGTERM ends the keeper,
// because it may be waiting for a directory of users that does not answer. DIR belongs to the
// daemon. Only the command touches the owner's files, with the owner's rights.
#include "base/read_all.h"
#include "keeper/command.h"
#include "keeper/log_fd.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

// Processes that the run leaves behind may hold its output open for as long as they like.
constexpr int kDrainMs = 200;
constexpr std::size_t kMostOrdersBytes = std::size_t{16} << 20;

Result<std::string> read_file(int directory, const char* name) {
  const Fd fd(::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno(std::string("cannot open ") + name, errno);
  auto text = read_all(fd.get(), kMostOrdersBytes + 1);
  if (!text) return fail_errno(std::string("cannot read ") + name, errno);
  if (text->size() > kMostOrdersBytes)
    return fail(Code::kLimit, std::string(name) + " is too long");
  return std::move(*text);
}

// Reserves disk space for the report before the run, whose output may fill the disk. If there is no
// space now, there may be some later.
constexpr const char* kNewReport = "report.new";
constexpr off_t kReportRoom = 4096;

Fd make_room(int directory) {
  Fd fd(::openat(directory, kNewReport, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd) (void)::posix_fallocate(fd.get(), 0, kReportRoom);
  return fd;
}

// Writes all of the report, or nothing.
Result<void> write_report(int directory, const Fd& fd, const jobs::KeeperReport& report) {
  const std::string text = encode(report);
  const auto size = static_cast<ssize_t>(text.size());
  if (!fd || ::pwrite(fd.get(), text.data(), text.size(), 0) != size ||
      ::ftruncate(fd.get(), size) != 0 || ::fsync(fd.get()) != 0 ||
      ::renameat(directory, kNewReport, directory, jobs::kReportFile) != 0) {
    return fail_errno("cannot write the report", errno);
  }
  return {};
}

class Keeper {
 public:
  Keeper(Command command, jobs::LogRing& log, int signals)
      : command_(std::move(command)), log_(log), signals_(signals) {}

  jobs::KeeperReport run() {
    while (!ended_) {
      pollfd watched[2] = {{signals_, POLLIN, 0}, {command_.output.get(), POLLIN, 0}};
      if (::poll(watched, command_.output ? 2 : 1, -1) < 0) continue;
      if (watched[0].revents != 0) take_signal();
      if (command_.output && watched[1].revents != 0) take_output();
    }
    drain();
    return report_;
  }

 private:
  void take_signal() {
    signalfd_siginfo info = {};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGTERM) (void)::kill(command_.pid, SIGTERM);
    if (info.ssi_signo == SIGQUIT) (void)::kill(command_.pid, SIGKILL);
    if (info.ssi_signo == SIGCHLD) reap();
  }

  void reap() {
    int status = 0;
    while (true) {
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return;
      if (pid != command_.pid) continue;
      ended_ = true;
      report_.signalled = WIFSIGNALED(status);
      report_.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    }
  }

  bool take_output() {
    char buffer[65536];
    const ssize_t count = ::read(command_.output.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) {
      command_.output.reset();
      return false;
    }
    // A full disk loses output, but never the job; the log says how much.
    (void)log_.write({buffer, static_cast<std::size_t>(count)});
    return true;
  }

  void drain() {
    while (command_.output) {
      pollfd watched = {command_.output.get(), POLLIN, 0};
      if (::poll(&watched, 1, kDrainMs) <= 0) return;
      (void)take_output();
    }
  }

  Command command_;
  jobs::LogRing& log_;
  int signals_;
  bool ended_ = false;
  jobs::KeeperReport report_;
};

// Held until this process ends. The kernel tells our pid to everybody who asks for the lock's
// holder.
Result<Fd> take_lock(int directory) {
  Fd fd(::openat(directory, jobs::kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("cannot open the lock of a job", errno);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_SETLK, &lock) != 0) return fail_errno("the job runs already", errno);
  // From here on the run has begun (jobs/record.h).
  if (::ftruncate(fd.get(), 0) != 0) return fail_errno("cannot empty the lock of a job", errno);
  return fd;
}

// Notifies systemd that we run, if it started us. The command never gets NOTIFY_SOCKET.
void say_that_it_is_there() {
  const char* const place = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  if (place == nullptr || std::strlen(place) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, place, std::strlen(place));
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(place));
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kReady = "READY=1";
  (void)::sendto(fd.get(), kReady.data(), kReady.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

Result<jobs::KeeperReport> keep(int directory) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, read_file(directory, jobs::kOrdersFile));
  GPUROTA_ASSIGN_OR_RETURN(const jobs::KeeperOrders orders, jobs::decode_orders(text));
  GPUROTA_ASSIGN_OR_RETURN(LogFd a, LogFd::open(directory, jobs::kLogFiles[0]));
  GPUROTA_ASSIGN_OR_RETURN(LogFd b, LogFd::open(directory, jobs::kLogFiles[1]));
  jobs::LogRing log(a, b, orders.log_bound);
  GPUROTA_TRY(log.open());
  sigset_t set, term;
  sigemptyset(&set);
  sigemptyset(&term);
  for (const int signal : {SIGTERM, SIGQUIT, SIGCHLD}) sigaddset(&set, signal);
  sigaddset(&term, SIGTERM);
  (void)::sigprocmask(SIG_BLOCK, &set, nullptr);
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
  (void)std::signal(SIGCHLD, SIG_DFL);  // may be inherited as ignored, which hides the run's end
  const Fd signals(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!signals) return fail_errno("cannot wait for signals", errno);
  // Orphans of the run become our children, and we reap them.
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  (void)std::signal(SIGTERM, SIG_DFL);  // we inherit the daemon's own handling
  (void)::sigprocmask(SIG_UNBLOCK, &term, nullptr);
  auto command = start_command(orders);
  (void)::sigprocmask(SIG_BLOCK, &term, nullptr);
  if (!command) return tl::unexpected(std::move(command).error());
  return Keeper(std::move(*command), log, signals.get()).run();
}

}  // namespace
}  // namespace gpurota::keeper

int main(int argc, char** argv) {
  using namespace gpurota;
  if (argc != 2) {
    (void)std::fputs("gpurota-keeper is started by gpurotad\n", stderr);
    return 2;
  }
  const Fd directory(::open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return 1;
  const auto lock = keeper::take_lock(directory.get());
  if (!lock) return 1;  // the other keeper reports
  (void)::unlinkat(directory.get(), jobs::kOldUnbegunFile, 0);
  keeper::say_that_it_is_there();
  const Fd room = keeper::make_room(directory.get());
  auto report = keeper::keep(directory.get());
  if (!report) report = jobs::KeeperReport{false, 0, report.error().message};
  const auto written = keeper::write_report(directory.get(), room, *report);
  return written ? 0 : 1;
}
