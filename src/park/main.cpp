// gpurota-park: parks processes, or brings them back, by the driver's calls (docs/design/park.md).
// gpurotad starts it, as its own process, because the driver may hang or crash.
//
//     gpurota-park park|unpark|state [--lock FILE] [--library FILE] [--patience SECONDS] PID…
//
// `park`: locks all processes, then takes them off their GPUs; if a step fails, everything is
// undone. `unpark`: brings each process back from whatever state it is in. Each step is a line on
// standard output: the pid, the step, "ok" or what the driver said, and the seconds that it took.
// Exit code: 0 if all is done; 1 if not, and then the last lines say in which state each process
// is; 2 if nothing was tried.
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

struct Options {
  std::string action;
  std::string lock;
  std::string library = "libcuda.so.1";
  milliseconds patience{120'000};  // of one step that moves memory
  std::vector<pid_t> pids;
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

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

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
  // One at a time, also if another daemon has started the other one.
  bool take_file() const {
    if (options_.lock.empty()) return true;
    const int fd = ::open(options_.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    const auto until = std::chrono::steady_clock::now() + kPredecessor;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(milliseconds(20));
    }
    return true;  // held until this process ends
  }

  template <class Call>
  bool step(pid_t pid, const char* name, Call call) {
    const auto begun = std::chrono::steady_clock::now();
    const Answer answer = call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    const bool good = answer == CUDA_SUCCESS;
    std::printf("%d %s %s %.3f\n", pid, name, good ? "ok" : driver_.name_of(answer).c_str(),
                took.count());
    hangs_ = hangs_ || !answer;
    return good;
  }

  int park() {
    bool good = true;
    for (const pid_t pid : options_.pids) {
      good = good && step(pid, "lock", [&] { return driver_.lock(pid, kLock); });
    }
    for (const pid_t pid : options_.pids) {
      good = good &&
             step(pid, "checkpoint", [&] { return driver_.checkpoint(pid, options_.patience); });
    }
    if (good) return kDone;
    if (!hangs_) (void)unpark();
    show_states();
    return kFailed;
  }

  // A process that has died needs nothing.
  bool unpark() {
    bool good = true;
    for (const pid_t pid : options_.pids) {
      CUprocessState state = CU_PROCESS_STATE_RUNNING;
      if (driver_.state(pid, &state) != CUDA_SUCCESS) {
        good = good && is_gone(pid);
      } else if (state == CU_PROCESS_STATE_CHECKPOINTED) {
        good =
            step(pid, "restore", [&] { return driver_.restore(pid, options_.patience); }) && good;
      } else {
        good = good && state != CU_PROCESS_STATE_FAILED;
      }
    }
    for (const pid_t pid : options_.pids) {
      CUprocessState state = CU_PROCESS_STATE_RUNNING;
      if (driver_.state(pid, &state) == CUDA_SUCCESS && state == CU_PROCESS_STATE_LOCKED) {
        good = step(pid, "unlock", [&] { return driver_.unlock(pid); }) && good;
      }
    }
    if (!good) show_states();
    return good;
  }

  void show_states() {
    for (const pid_t pid : options_.pids) {
      CUprocessState state = CU_PROCESS_STATE_RUNNING;
      const Answer answer = driver_.state(pid, &state);
      const bool known = answer == CUDA_SUCCESS;
      std::printf("%d state %s\n", pid,
                  known          ? word_of(state)
                  : is_gone(pid) ? "gone"
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
      const int pid = std::atoi(word.c_str());
      if (pid <= 1) return false;
      options->pids.push_back(pid);
    }
  }
  const auto& action = options->action;
  return (action == "park" || action == "unpark" || action == "state") && !options->pids.empty();
}

}  // namespace
}  // namespace gpurota::park

int main(int argc, char** argv) {
  gpurota::park::Options options;
  if (!gpurota::park::parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: gpurota-park park|unpark|state [--lock FILE] [--library FILE] "
                 "[--patience SECONDS] PID...\n");
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
