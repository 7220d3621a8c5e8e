// gpurota-park: parks processes, or brings them back, by the driver's calls (docs/design/park.md).
// gpurotad starts it, as its own process, because the driver may hang or crash.
//
//     gpurota-park park|unpark|state [--lock FILE] [--library FILE] [--patience SECONDS] PID:START…
//
// START is the start time of the process as /proc/PID/stat has it, so that a later process with the
// same pid is left alone.
//
// `park`: locks all processes, then takes them off their GPUs; if a step fails, everything is
// undone. `unpark`: brings each process back from whatever state it is in. Each step is a line on
// standard output: the pid, the step, "ok" or what the driver said, and the seconds that it took.
// Exit code: 0 if all is done; 1 if not, and then the last lines say in which state each process
// is; 2 if nothing was tried.
#include "base/proc_stat.h"
#include "park/park_driver.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

namespace gpurota::park {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInit{60'000};
constexpr milliseconds kLock{10'000};
// How long an earlier gpurota-park may still run, that a gpurotad which ended has started.
constexpr milliseconds kPredecessor{300'000};
constexpr int kDone = 0, kFailed = 1, kNotTried = 2;

struct Process {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
};

struct Options {
  std::string action;
  std::string lock;
  std::string library = "libcuda.so.1";
  milliseconds patience{120'000};  // of one step that moves memory
  std::vector<Process> processes;
};

const char* word_of(CUprocessState state) {
  switch (state) {
    case CU_PROCESS_STATE_RUNNING:
      return "running";
    case CU_PROCESS_STATE_LOCKED:
      return "locked";
    case CU_PROCESS_STATE_CHECKPOINTED:
      return "checkpointed";
    case CU_PROCESS_STATE_FAILED:
      return "failed";
  }
  return "unknown";
}

// Whether the process has ended. Another process may have its pid now.
bool is_gone(const Process& process) {
  const auto stat = read_proc_stat(process.pid);
  if (!stat) return ::kill(process.pid, 0) != 0 && errno == ESRCH;
  return stat->start_ticks != process.start_ticks || stat->state == 'Z' || stat->state == 'X';
}

// Whether somebody still reads the standard output. The gpurotad that wanted this to be done may
// have ended, and its successor may have decided otherwise.
bool has_reader() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 0 || (out.revents & (POLLERR | POLLHUP)) == 0;
}

class Parker {
 public:
  explicit Parker(const Options& options) : options_(options) {}

  int run() {
    std::string error;
    if (!take_file() || !driver_.load(options_.library, kInit, &error)) {
      std::fprintf(stderr, "%s\n", error.empty() ? "another gpurota-park runs" : error.c_str());
      return kNotTried;
    }
    if (options_.action == "park") return park();
    if (options_.action == "unpark") return unpark() ? kDone : kFailed;
    show_states();
    return kDone;
  }

 private:
  // One at a time, even if another daemon has started the other one.
  bool take_file() const {
    if (options_.lock.empty()) return true;
    const int fd = ::open(options_.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    const auto until = std::chrono::steady_clock::now() + kPredecessor;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() >= until || !has_reader()) return false;
      std::this_thread::sleep_for(milliseconds(20));
    }
    return has_reader();  // the file is locked until this process ends
  }

  // The driver knows processes by pid only, so a process that has ended is found before the call.
  template <class Call>
  bool step(const Process& process, const char* name, Call call) {
    const pid_t pid = process.pid;
    if (is_gone(process)) {
      std::printf("%d %s it has ended 0\n", pid, name);
      return false;
    }
    const auto begun = std::chrono::steady_clock::now();
    const Answer answer = call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    const bool good = answer == CUDA_SUCCESS;
    std::printf("%d %s %s %.3f\n", pid, name, good ? "ok" : driver_.name_of(answer).c_str(),
                took.count());
    hangs_ = hangs_ || !answer;
    return good;
  }

  // The process may have ended after the check, and another one may have got its pid.
  bool lock(const Process& process) {
    if (!step(process, "lock", [&] { return driver_.lock(process.pid, kLock); })) return false;
    if (!is_gone(process)) return true;
    (void)driver_.unlock(process.pid);
    return false;
  }

  int park() {
    bool good = true;
    for (const Process& process : options_.processes) good = good && lock(process);
    for (const Process& process : options_.processes) {
      good = good && step(process, "checkpoint",
                          [&] { return driver_.checkpoint(process.pid, options_.patience); });
    }
    if (good) return kDone;
    if (!hangs_) (void)unpark();
    show_states();
    return kFailed;
  }

  // A process that has died needs nothing.
  bool unpark() {
    bool good = true;
    for (const Process& process : options_.processes) {
      const pid_t pid = process.pid;
      CUprocessState state = CU_PROCESS_STATE_RUNNING;
      if (is_gone(process)) continue;
      if (driver_.state(pid, &state) != CUDA_SUCCESS) {
        good = good && is_gone(process);
      } else if (state == CU_PROCESS_STATE_CHECKPOINTED) {
        good = step(process, "restore", [&] { return driver_.restore(pid, options_.patience); }) &&
               good;
      } else {
        good = good && state != CU_PROCESS_STATE_FAILED;
      }
    }
    for (const Process& process : options_.processes) {
      const pid_t pid = process.pid;
      CUprocessState state = CU_PROCESS_STATE_RUNNING;
      if (!is_gone(process) && driver_.state(pid, &state) == CUDA_SUCCESS &&
          state == CU_PROCESS_STATE_LOCKED) {
        good = step(process, "unlock", [&] { return driver_.unlock(pid); }) && good;
      }
    }
    if (!good) show_states();
    return good;
  }

  void show_states() {
    for (const Process& process : options_.processes) {
      CUprocessState state = CU_PROCESS_STATE_RUNNING;
      const bool gone = is_gone(process);
      const Answer answer = gone ? CUDA_SUCCESS : driver_.state(process.pid, &state);
      const bool known = answer == CUDA_SUCCESS;
      std::printf("%d state %s\n", process.pid,
                  gone || (!known && is_gone(process)) ? "gone"
                  : known                              ? word_of(state)
                                                       : driver_.name_of(answer).c_str());
    }
  }

  const Options& options_;
  ParkDriver driver_;
  bool hangs_ = false;
};

bool parse(int argc, char** argv, Options* options) {
  if (argc < 3) return false;
  options->action = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--lock" && has_value) {
      options->lock = argv[++i];
    } else if (word == "--library" && has_value) {
      options->library = argv[++i];
    } else if (word == "--patience" && has_value) {
      options->patience = std::chrono::seconds(std::max(1, std::atoi(argv[++i])));
    } else {
      char* rest = nullptr;
      Process process;
      process.pid = static_cast<pid_t>(std::strtol(word.c_str(), &rest, 10));
      if (process.pid <= 1 || *rest != ':') return false;
      process.start_ticks = std::strtoull(rest + 1, &rest, 10);
      if (process.start_ticks == 0 || *rest != '\0') return false;
      options->processes.push_back(process);
    }
  }
  const auto& action = options->action;
  return (action == "park" || action == "unpark" || action == "state") &&
         !options->processes.empty();
}

}  // namespace
}  // namespace gpurota::park

int main(int argc, char** argv) {
  gpurota::park::Options options;
  if (!gpurota::park::parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: gpurota-park park|unpark|state [--lock FILE] [--library FILE] "
                 "[--patience SECONDS] PID:START...\n");
    return gpurota::park::kNotTried;
  }
  // The daemon that reads the lines may end meanwhile.
  (void)std::signal(SIGPIPE, SIG_IGN);
  // The daemon's own environment must not hide GPUs.
  (void)::unsetenv("CUDA_VISIBLE_DEVICES");
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int code = gpurota::park::Parker(options).run();
  std::fflush(stdout);
  ::_exit(code);  // a call of the driver may still hang in its thread
}
