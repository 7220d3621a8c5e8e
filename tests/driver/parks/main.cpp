// Measures what happens to a process that the driver parks from outside: locks, checkpoints,
// restores, unlocks.
//
//     driver_parks calls|habits [ROUNDS] [--only NAME] [--at-once N] [--limit SECONDS]
//
// With "calls", a process of its own calls each function without pause, from before the lock until
// after the unlock. With "habits", a process has one kind of memory, object or state. Prints a
// tab-separated line for each function or habit, which with several rounds says how many times each
// outcome was seen. Columns of calls: function, aim, while locked, while parked (waits, or answers
// and how), outcomes. Columns of habits: name, longest time to park in seconds, longest time to
// restore in seconds, outcomes. An outcome says what became of the process ("goes on": unharmed).
// If a step failed, the outcome begins with that step and its result.
// Exit code: 0; 2 if the driver is not usable.
#include "tests/driver/parks/park.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace parks;

namespace {

constexpr int kPageFd = 3;
constexpr unsigned kLockMs = 5000;
constexpr auto kInEachPhase = std::chrono::milliseconds(30);
constexpr auto kPatience = std::chrono::seconds(10);

ParkFunctions park;

std::string name_of(CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return std::to_string(result);
  }
  constexpr const char* kPrefix = "CUDA_ERROR_";
  return std::strncmp(name, kPrefix, std::strlen(kPrefix)) == 0 ? name + std::strlen(kPrefix)
                                                                : name;
}

double seconds_of(const std::function<void()>& body) {
  const auto begun = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// The behaviour of one process while it was parked.
struct Seen {
  std::string locked = "-", parked = "-";
  double out = 0, back = 0;
  std::string outcome;
};

class Parked {
 public:
  Parked(const std::string& kind, std::size_t index) {
    const int fd = ::memfd_create("page", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, sizeof(Page)) != 0) std::exit(2);
    page_ = static_cast<Page*>(
        ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, fd, kPageFd);
    std::string self = "/proc/self/exe", number = std::to_string(index), word = "--child";
    std::string kind_word = kind;
    char* arguments[] = {self.data(), word.data(), kind_word.data(), number.data(), nullptr};
    if (::posix_spawn(&pid_, self.c_str(), &actions, nullptr, arguments, environ) != 0) pid_ = 0;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(fd);
  }
  ~Parked() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::munmap(page_, sizeof(Page));
  }
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;

  bool wait_ready() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (page_->ready == 0 && std::chrono::steady_clock::now() < until && lives()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return page_->ready == 1 && lives();
  }

  Seen measure() {
    Seen seen;
    std::string failed;
    const auto step = [&](const char* name, const auto& call) {
      if (!failed.empty()) return;
      const CUresult result = call();
      if (result != CUDA_SUCCESS) failed = std::string(name) + " " + name_of(result);
    };
    std::this_thread::sleep_for(kInEachPhase);
    page_->phase = kLocking;
    CUcheckpointLockArgs lock_args = {kLockMs, 0, {}};
    step("lock", [&] { return park.lock(pid_, &lock_args); });
    const bool locked = failed.empty();
    if (locked) stay(kLocked);
    CUcheckpointCheckpointArgs out_args = {};
    seen.out =
        seconds_of([&] { step("checkpoint", [&] { return park.checkpoint(pid_, &out_args); }); });
    const bool parked = failed.empty();
    if (parked) {
      stay(kCheckpointed);
      CUcheckpointRestoreArgs back_args = {};
      seen.back =
          seconds_of([&] { step("restore", [&] { return park.restore(pid_, &back_args); }); });
      if (failed.empty()) stay(kRestored);
    }
    CUcheckpointUnlockArgs unlock_args = {};
    const CUresult unlocked = locked ? park.unlock(pid_, &unlock_args) : CUDA_SUCCESS;
    if (unlocked != CUDA_SUCCESS) failed += ", unlock " + name_of(unlocked);
    stay(kUnlocked);
    page_->phase = kEnd;
    const std::string end = wait_for_end();
    if (locked) seen.locked = what_calls_did(kLocked);
    if (parked) seen.parked = what_calls_did(kCheckpointed);
    seen.outcome = failed.empty() ? end : failed + ", then " + end;
    return seen;
  }

 private:
  bool lives() {
    siginfo_t info = {};
    return pid_ > 0 &&
           ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }
  void stay(Phase phase) {
    page_->phase = phase;
    std::this_thread::sleep_for(kInEachPhase);
  }
  std::string wait_for_end() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (lives() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (lives()) return "hangs";
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    if (WIFSIGNALED(status)) return "dies of signal " + std::to_string(WTERMSIG(status));
    if (page_->done == 1) return "goes on";
    return page_->done == 2 ? "has a wrong value" : "ends";
  }
  // The result of the calls that began in this phase; "waits" if none of them ended in it.
  std::string what_calls_did(Phase phase) {
    const std::uint64_t within = page_->calls[phase] - page_->crossed[phase];
    if (within == 0) return "waits";
    return "answers " + name_of(static_cast<CUresult>(page_->result[phase].load()));
  }

  pid_t pid_ = 0;
  Page* page_ = nullptr;
};

struct Line {
  std::map<std::string, int> locked, parked, outcomes;
  double out = 0, back = 0;
  int rounds = 0;
};

std::string counts_of(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [what, count] : counts) {
    text += (text.empty() ? "" : "; ") + what;
    if (counts.size() > 1) text += " (" + std::to_string(count) + ")";
  }
  return text;
}

int be_parked(const char* kind, const char* index) {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, kPageFd, 0);
  if (memory == MAP_FAILED || !load_driver()) return 1;
  load_capture_functions();
  Page& page = *static_cast<Page*>(memory);
  const auto number = static_cast<std::size_t>(std::strtoul(index, nullptr, 10));
  return std::strcmp(kind, "calls") == 0 ? call_without_pause(page, number)
                                         : keep_a_habit(page, number);
}

bool load_park() {
  void* library = driver_library();
  const auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(library, name));
    return slot != nullptr;
  };
  return find(park.lock, "cuCheckpointProcessLock") &&
         find(park.checkpoint, "cuCheckpointProcessCheckpoint") &&
         find(park.restore, "cuCheckpointProcessRestore") &&
         find(park.unlock, "cuCheckpointProcessUnlock");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--child") == 0) return be_parked(argv[2], argv[3]);
  std::string kind = "calls", only;
  int rounds = 10;
  unsigned at_once = 30;
  auto limit = std::chrono::seconds(3600);  // no new process after that
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else if (word == "--at-once" && i + 1 < argc) {
      at_once = static_cast<unsigned>(std::max(1, std::atoi(argv[++i])));
    } else if (word == "--limit" && i + 1 < argc) {
      limit = std::chrono::seconds(std::atoi(argv[++i]));
    } else if (word == "calls" || word == "habits") {
      kind = word;
    } else {
      rounds = std::max(1, std::atoi(word.c_str()));
    }
  }
  if (!load_driver()) return 2;
  load_capture_functions();
  const std::vector<std::string> names = kind == "calls" ? names_of_calls() : names_of_habits();
  if (!load_park() || cuInit(0) != CUDA_SUCCESS) {
    std::fprintf(stderr, "the driver cannot park processes\n");
    return 2;
  }
  std::vector<Line> lines(names.size());
  std::vector<std::pair<std::size_t, int>> work;  // the measured call or habit, and the round
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].rfind(only, 0) == 0) work.emplace_back(i, round);
    }
  }
  std::mutex mutex;
  std::size_t next = 0;
  const auto until = std::chrono::steady_clock::now() + limit;
  const auto measure_all = [&] {
    while (std::chrono::steady_clock::now() < until) {
      std::size_t index = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == work.size()) return;
        index = work[next++].first;
      }
      Parked process(kind, index);
      const bool ready = process.wait_ready();
      const Seen seen = ready ? process.measure() : Seen{"-", "-", 0, 0, "cannot be set up"};
      const std::lock_guard lock(mutex);
      std::fprintf(stderr, "%s\t%s\t%s\t%s\n", names[index].c_str(), seen.locked.c_str(),
                   seen.parked.c_str(), seen.outcome.c_str());
      Line& line = lines[index];
      ++line.rounds;
      ++line.locked[seen.locked];
      ++line.parked[seen.parked];
      ++line.outcomes[seen.outcome];
      line.out = std::max(line.out, seen.out);
      line.back = std::max(line.back, seen.back);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < at_once; ++i) threads.emplace_back(measure_all);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Line& line = lines[i];
    if (line.rounds == 0) continue;
    if (kind == "calls") {
      std::printf("%s\t%s\t%s\t%s\n", names[i].c_str(), counts_of(line.locked).c_str(),
                  counts_of(line.parked).c_str(), counts_of(line.outcomes).c_str());
    } else {
      std::printf("%s\t%.2f\t%.2f\t%s\n", names[i].c_str(), line.out, line.back,
                  counts_of(line.outcomes).c_str());
    }
  }
  return 0;
}
