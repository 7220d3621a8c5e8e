#include "sys/system_programs.h"

#include "base/close_from.h"
#include "base/fd.h"
#include "base/program_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

constexpr std::size_t kMostComplaint = 1024;
constexpr std::size_t kMostOutput = std::size_t{256} << 10;
// systemd ends a unit when its time is over; this is the extra time we give systemd-run.
constexpr Duration kSystemdTakes = std::chrono::seconds(2);
constexpr const char* kEnvironment[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8",
    nullptr};

Result<Fd> file_with(const std::string& text) {
  Fd file(::memfd_create("gpurota-notice", MFD_CLOEXEC));
  if (!file) return fail_errno("cannot make a file in memory", errno);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail_errno("cannot write a file in memory", errno);
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0)
    return fail_errno("cannot read a file in memory", errno);
  return file;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// The code below runs between fork and execve, where another thread may have held any lock: it
// makes system calls only.

[[noreturn]] void give_up(std::string_view why) {
  (void)!::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(127);
}

// By syscall(): libc's functions would signal other threads, which this process does not have.
bool become(uid_t uid, gid_t gid, const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0 &&
         ::syscall(SYS_setresgid, gid, gid, gid) == 0 &&
         ::syscall(SYS_setresuid, uid, uid, uid) == 0;
}

// Resets what is special about the daemon: its OOM score, its limit of open files and its umask.
void forget_our_limits() {
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) (void)!::write(score, "0", 1);
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min<rlim_t>(1024, files.rlim_max);
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  (void)::umask(022);
}

std::string_view why_not(int error) {
  if (error == ENOENT) return "cannot be run: there is no such file";
  if (error == EACCES || error == EPERM) return "cannot be run: it is not executable for this user";
  if (error == ENOEXEC) return "cannot be run: it is not a program (has a script its #! line?)";
  return "cannot be run";
}

}  // namespace

struct SystemPrograms::Run {
  ports::Program program;
  std::function<void(const ports::ProgramEnd&)> done;
  TimePoint begun{};
  ports::ProgramEnd end{};
  pid_t pid = 0;  // 0: not started
  Fd pidfd{}, complaints{}, lines{};
  ports::EventLoop::SourcePtr on_death{}, on_output{}, on_lines{}, timer{};
  bool line_over = false;  // the first line is complete
};

SystemPrograms::SystemPrograms(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts,
                               std::string systemd_run)
    : loop_(loop),
      accounts_(std::move(accounts)),
      systemd_run_(std::move(systemd_run)),
      worker_(loop, "notice-user") {}

SystemPrograms::~SystemPrograms() {
  for (const auto& [id, run] : runs_) {
    if (run->pid <= 0 || run->program.finishes) continue;
    (void)::kill(-run->pid, SIGKILL);
    (void)::kill(run->pid, SIGKILL);
    (void)::waitpid(run->pid, nullptr, WNOHANG);
  }
}

Result<SystemPrograms::Identity> SystemPrograms::look_up(ports::Accounts& accounts,
                                                         const std::string& user) {
  GPUROTA_ASSIGN_OR_RETURN(const uid_t uid, accounts.read_uid(user));
  GPUROTA_ASSIGN_OR_RETURN(const ports::Account account, accounts.read_account(uid));
  Identity identity;
  identity.uid = uid;
  identity.gid = account.groups.front().gid;
  for (const ports::Group& group : account.groups) identity.groups.push_back(group.gid);
  return identity;
}

void SystemPrograms::run(const ports::Program& program,
                         std::function<void(const ports::ProgramEnd&)> done) {
  const std::uint64_t id = next_++;
  Run& run = *runs_.emplace(id, std::make_unique<Run>()).first->second;
  run.program = program;
  run.done = std::move(done);
  run.begun = loop_.now();
  run.timer = loop_.add_timer(
      run.begun + program.time_limit + (systemd_run_.empty() ? Duration(0) : kSystemdTakes),
      ports::Urgency::kHousekeeping, [this, id] { on_time(id); });
  // An unknown user is reported like a missing program.
  if (!systemd_run_.empty() || ::geteuid() != 0) return start(id, nullptr);
  worker_.run([accounts = accounts_, user = program.user] { return look_up(*accounts, user); },
              [this, id](Result<Identity> identity) {
                const auto at = runs_.find(id);
                if (at == runs_.end() || !at->second->end.started) return;
                if (!identity) return refuse(id, identity.error());
                start(id, &*identity);
              });
}

std::vector<std::string> SystemPrograms::words_of(const ports::Program& program) const {
  if (systemd_run_.empty()) return program.argv;
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(program.time_limit).count();
  std::vector<std::string> words = {
      systemd_run_, "--quiet", "--collect", "--no-ask-password", "--pipe", "--wait",
      "--service-type=exec", "--description=gpurota: " + program.purpose,
      "--property=User=" + program.user, fmt::format("--property=RuntimeMaxSec={}ms", limit),
      // systemd kills the program, and all that it leaves behind, soon after it should have ended.
      "--property=TimeoutStopSec=1s", "--"};
  words.insert(words.end(), program.argv.begin(), program.argv.end());
  return words;
}

void SystemPrograms::start(std::uint64_t id, const Identity* identity) {
  Run& run = *runs_.at(id);
  if (auto forked = fork(run, identity); !forked) return refuse(id, forked.error());
  if (auto watched = watch(id, run); !watched) {
    (void)::kill(run.pid, SIGKILL);
    (void)::waitpid(std::exchange(run.pid, 0), nullptr, 0);
    refuse(id, watched.error());
  }
}

Result<void> SystemPrograms::fork(Run& run, const Identity* identity) {
  const std::vector<std::string> words = words_of(run.program);
  const std::vector<char*> argv = pointers(words);
  GPUROTA_ASSIGN_OR_RETURN(const Fd input, file_with(run.program.input));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  run.complaints = Fd(ends[0]);
  const Fd complaint(ends[1]);
  (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Fd output;
  if (run.program.keeps_output) {
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
    run.lines = Fd(ends[0]);
    output = Fd(ends[1]);
    (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot fork", errno);
  if (pid > 0) {
    run.pid = pid;
    return {};
  }
  (void)::setsid();
  const int nothing = ::open("/dev/null", O_WRONLY);
  (void)::dup2(complaint.get(), STDERR_FILENO);
  (void)::dup2(input.get(), STDIN_FILENO);
  (void)::dup2(output ? output.get() : nothing, STDOUT_FILENO);
  close_from(3);
  set_signals(ProgramSignals::none());
  forget_our_limits();
  if (identity != nullptr && !become(identity->uid, identity->gid, identity->groups)) {
    give_up("cannot become its user");
  }
  if (::chdir("/") != 0) give_up("cannot go to /");
  (void)::execve(argv[0], argv.data(),
                 run.program.own_environment ? environ : const_cast<char* const*>(kEnvironment));
  give_up(why_not(errno));
}

Result<void> SystemPrograms::watch(std::uint64_t id, Run& run) {
  // Our child, not yet reaped: the pid still refers to it.
  run.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, run.pid, 0)));
  if (!run.pidfd) return fail_errno("cannot watch a program", errno);
  GPUROTA_ASSIGN_OR_RETURN(run.on_death,
                           loop_.watch_fd(run.pidfd.get(), false, ports::Urgency::kHousekeeping,
                                          [this, id](unsigned) { on_death(id); }));
  GPUROTA_ASSIGN_OR_RETURN(
      run.on_output, loop_.watch_fd(run.complaints.get(), false, ports::Urgency::kHousekeeping,
                                    [this, &run](unsigned) { on_output(run); }));
  if (!run.lines) return {};
  GPUROTA_ASSIGN_OR_RETURN(run.on_lines,
                           loop_.watch_fd(run.lines.get(), false, ports::Urgency::kHousekeeping,
                                          [this, &run](unsigned) { on_lines(run); }));
  return {};
}

// Reads a little at a time: the loop calls again while there is more.
void SystemPrograms::on_output(Run& run) const {
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(run.complaints.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return run.on_output.reset();
  std::string& line = run.end.complaint;
  for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(size))) {
    if (run.line_over) break;
    run.line_over = c == '\n' ? !line.empty() : line.size() >= kMostComplaint;
    if (c != '\n' && !run.line_over) line += c;
  }
}

void SystemPrograms::on_lines(Run& run) const {
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(run.lines.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return run.on_lines.reset();
  const std::size_t room = kMostOutput - run.end.output.size();
  run.end.output.append(buffer.data(), std::min(static_cast<std::size_t>(size), room));
}

void SystemPrograms::on_time(std::uint64_t id) {
  const auto at = runs_.find(id);
  if (at == runs_.end()) return;
  Run& run = *at->second;
  run.end.timed_out = true;
  if (run.pid == 0) {
    return refuse(id, {Code::kTimeout, 0, "the account database did not answer in time"});
  }
  // on_death() follows.
  (void)::kill(-run.pid, SIGKILL);
  (void)::kill(run.pid, SIGKILL);
}

void SystemPrograms::on_death(std::uint64_t id) {
  Run& run = *runs_.at(id);
  siginfo_t info = {};
  // Kill the processes that the program has left behind. The program is not yet reaped, so no other
  // group has its number.
  (void)::kill(-run.pid, SIGKILL);
  if (::waitid(P_PID, static_cast<id_t>(run.pid), &info, WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0) {
    return;
  }
  run.pid = 0;
  if (info.si_code == CLD_EXITED) {
    run.end.code = info.si_status;
  } else {
    run.end.signal = info.si_status;
  }
  if (run.on_output) on_output(run);
  // A single read may not empty the pipe.
  for (int i = 0; i < 64 && run.on_lines; ++i) on_lines(run);
  finish(id);
}

void SystemPrograms::refuse(std::uint64_t id, const Error& why) {
  Run& run = *runs_.at(id);
  run.end.started = false;
  run.end.complaint = why.message;
  // Posted, so that `done` is never called from within run().
  loop_.post([this, id, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired() && runs_.contains(id)) finish(id);
  });
}

void SystemPrograms::finish(std::uint64_t id) {
  const auto at = runs_.find(id);
  const std::unique_ptr<Run> run = std::move(at->second);
  runs_.erase(at);
  run->end.took = loop_.now() - run->begun;
  // systemd has ended the program.
  if (!run->end.is_good() && run->end.took >= run->program.time_limit) run->end.timed_out = true;
  run->done(run->end);
}

}  // namespace gpurota::sys
