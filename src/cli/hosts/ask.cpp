#include "cli/hosts/ask.h"

#include "base/close_from.h"
#include "base/fd.h"
#include "cli/hosts/remote_line.h"
#include "cli/hosts/ssh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMostErrors = 4096;
constexpr int kNotFound = 127;
// An ssh that has closed its output will end at once, but poll() does not report its end.
constexpr milliseconds kTick{10};

// The last line that is not empty.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const std::size_t begin = text.find_last_of("\r\n", end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// Messages of gpurota on the other machine begin with "gpurota: ".
std::string first_complaint(const std::string& text) {
  constexpr std::string_view kOurs = "gpurota: ";
  const std::size_t begin = text.find(kOurs);
  if (begin == std::string::npos) return last_line(text);
  const std::size_t from = begin + kOurs.size();
  return text.substr(from, text.find_first_of("\r\n", from) - from);
}

// One ssh, from its start to its end.
class OneSsh {
 public:
  static Result<OneSsh> start(const std::vector<std::string>& words, const AskLimits& limits);
  OneSsh(OneSsh&& other) noexcept { *this = std::move(other); }
  OneSsh& operator=(OneSsh&& other) noexcept {
    std::swap(pid_, other.pid_);
    out_ = std::move(other.out_);
    errors_ = std::move(other.errors_);
    until_ = other.until_;
    most_ = other.most_;
    told_ = std::move(other.told_);
    return *this;
  }
  ~OneSsh() { end(); }

  std::array<int, 2> fds() const { return {out_.get(), errors_.get()}; }
  Clock::time_point until() const { return until_; }
  bool is_closing() const { return !out_; }
  // Reads the output that has arrived. Returns whether ssh has ended.
  bool step(Clock::time_point now);
  const Told& told() const { return told_; }

 private:
  OneSsh() = default;
  // False: end of file.
  bool read_some(int fd, std::string& into, std::size_t most, bool keep_end);
  void end();

  pid_t pid_ = -1;
  Fd out_, errors_;
  Clock::time_point until_;
  std::size_t most_ = 0;
  Told told_;
};

[[noreturn]] void become_asking_ssh(std::vector<char*> argv, int nothing, int out, int errors,
                                    pid_t parent) {
  // The helpers of ssh must end with it, and ssh with us.
  (void)::setpgid(0, 0);
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotFound);
  if (::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(errors, 2) < 0) ::_exit(kNotFound);
  close_from(3);
  (void)::execvp(argv[0], argv.data());
  constexpr char kWhy[] = "gpurota: cannot execute ssh; is openssh-client installed?\n";
  (void)!::write(2, kWhy, sizeof kWhy - 1);
  ::_exit(kExitOfSsh);
}

Result<OneSsh> OneSsh::start(const std::vector<std::string>& words, const AskLimits& limits) {
  int out[2], errors[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  Fd out_read(out[0]), out_write(out[1]);
  if (::pipe2(errors, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  Fd errors_read(errors[0]), errors_write(errors[1]);
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return fail_errno("cannot open /dev/null", errno);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start a process", errno);
  if (pid == 0) {
    become_asking_ssh(std::move(argv), nothing.get(), out_write.get(), errors_write.get(), parent);
  }
  (void)::setpgid(pid, pid);
  (void)::fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
  (void)::fcntl(errors_read.get(), F_SETFL, O_NONBLOCK);
  OneSsh one;
  one.pid_ = pid;
  one.out_ = std::move(out_read);
  one.errors_ = std::move(errors_read);
  one.until_ = Clock::now() + limits.each;
  one.most_ = limits.bytes;
  return one;
}

bool OneSsh::read_some(int fd, std::string& into, std::size_t most, bool keep_end) {
  std::array<char, 65536> buffer;
  // A machine that sends without end must not delay the others: one piece at a time.
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  into.append(buffer.data(), static_cast<std::size_t>(got));
  if (into.size() <= most) return true;
  if (!keep_end) return false;
  into.erase(0, into.size() - most);
  return true;
}

bool OneSsh::step(Clock::time_point now) {
  if (out_ && !read_some(out_.get(), told_.out, most_, false)) out_.reset();
  if (errors_ && !read_some(errors_.get(), told_.errors, kMostErrors, true)) errors_.reset();
  told_.too_long = told_.out.size() > most_;
  if (told_.too_long) {
    end();
    return true;
  }
  // A background process, such as a shared connection of ssh, may keep standard error open.
  if (!out_ && ::waitpid(pid_, &told_.status, WNOHANG) == pid_) {
    pid_ = -1;
    // One read is enough: a pipe holds no more than one read takes.
    if (errors_) (void)read_some(errors_.get(), told_.errors, kMostErrors, true);
    return true;
  }
  if (now < until_) return false;
  told_.in_time = false;
  end();
  return true;
}

void OneSsh::end() {
  if (pid_ < 0) return;
  (void)::kill(-pid_, SIGKILL);
  (void)::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

// Waits until something is readable, or until the first time limit.
void wait_for(const std::vector<std::optional<OneSsh>>& all) {
  std::vector<pollfd> polled;
  Clock::time_point until = Clock::now() + milliseconds(1000);
  for (const std::optional<OneSsh>& asking : all) {
    if (!asking) continue;
    for (const int fd : asking->fds()) {
      if (fd >= 0) polled.push_back({fd, POLLIN, 0});
    }
    until = std::min(until, asking->until());
    if (asking->is_closing()) until = std::min(until, Clock::now() + kTick);
  }
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  (void)::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
}

}  // namespace

Result<std::string> read_told(const Told& told, const AskLimits& limits) {
  if (told.too_long) {
    return fail(Code::kIo, fmt::format("its answer is longer than {} MiB", limits.bytes >> 20));
  }
  if (!told.in_time) {
    return fail(Code::kTimeout,
                fmt::format("no answer within {} s",
                            std::chrono::ceil<std::chrono::seconds>(limits.each).count()));
  }
  if (WIFSIGNALED(told.status)) {
    return fail(Code::kGone, fmt::format("ssh was ended by signal {}", WTERMSIG(told.status)));
  }
  const int code = WEXITSTATUS(told.status);
  if (code == 0) return told.out;
  if (code == kExitOfSsh) {
    const std::string why = last_line(told.errors);
    return fail(Code::kUnavailable,
                "cannot be reached: " + (why.empty() ? "ssh does not say why" : why));
  }
  if (code == kNotFound) return fail(Code::kNotFound, "there is no gpurota on its PATH");
  const std::string why = first_complaint(told.errors);
  if (why.empty()) {
    return fail(Code::kIo, fmt::format("gpurota failed there with exit status {}", code));
  }
  const bool is_unknown =
      why.starts_with("there is no option '") || why.starts_with("there is no command '");
  return fail(Code::kIo, is_unknown ? why + " (is its gpurota older?)" : why);
}

std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const std::string& line,
                                  const AskLimits& limits) {
  (void)std::signal(SIGCHLD, SIG_DFL);  // if ignored, the exit statuses would be lost
  std::vector<HostAnswer> answers;
  for (const std::string& host : hosts) answers.push_back({host, std::string()});
  std::vector<std::optional<OneSsh>> all(hosts.size());
  std::size_t next = 0, running = 0;
  while (next < hosts.size() || running > 0) {
    while (next < hosts.size() && running < limits.at_once) {
      auto started = OneSsh::start(asking_words(hosts[next], line), limits);
      if (started) {
        all[next].emplace(std::move(*started));
        ++running;
      } else {
        answers[next].text = tl::unexpected(started.error());
      }
      ++next;
    }
    wait_for(all);
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i] || !all[i]->step(now)) continue;
      answers[i].text = read_told(all[i]->told(), limits);
      all[i].reset();
      --running;
    }
  }
  return answers;
}

}  // namespace gpurota::cli
