// Parking another process: the four steps, what its calls do meanwhile, and what prevents parking.
// Each check has a process of its own to park, which runs this program with --child.
#include "abi/cuda_checkpoint.h"
#include "tests/driver/api.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBytes = 64 * kMiB;
constexpr std::uint32_t kValue = 0x5eed1234;
constexpr unsigned kLockMs = 2000;
constexpr int kPageFd = 3;

// Shared with the process that is parked, which writes all members except `end`.
struct Page {
  std::atomic<std::uint32_t> ready;  // 2: it could not be set up
  std::atomic<std::uint32_t> end;
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint32_t> good;  // 1: the memory is as it was
};

struct Children {
  const char* name;
  int (*run)(Page& page);
};

struct Park {
  CUresult (*state)(int, CUprocessState*) = nullptr;
  CUresult (*lock)(int, CUcheckpointLockArgs*) = nullptr;
  CUresult (*checkpoint)(int, CUcheckpointCheckpointArgs*) = nullptr;
  CUresult (*restore)(int, CUcheckpointRestoreArgs*) = nullptr;
  CUresult (*unlock)(int, CUcheckpointUnlockArgs*) = nullptr;

  Park() {
    const auto find = [](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(
          ::dlsym(driver_library(), name));
    };
    find(state, "cuCheckpointProcessGetState");
    find(lock, "cuCheckpointProcessLock");
    find(checkpoint, "cuCheckpointProcessCheckpoint");
    find(restore, "cuCheckpointProcessRestore");
    find(unlock, "cuCheckpointProcessUnlock");
  }
  bool works() const { return unlock != nullptr && cuInit(0) == CUDA_SUCCESS; }

  CUresult take_lock(int pid) const {
    CUcheckpointLockArgs args = {};
    args.timeoutMs = kLockMs;
    return lock(pid, &args);
  }
  CUresult take_off(int pid) const {
    CUcheckpointCheckpointArgs args = {};
    return checkpoint(pid, &args);
  }
  CUresult put_back(int pid) const {
    CUcheckpointRestoreArgs args = {};
    return restore(pid, &args);
  }
  CUresult give_lock(int pid) const {
    CUcheckpointUnlockArgs args = {};
    return unlock(pid, &args);
  }
  int state_of(int pid) const {
    CUprocessState found = CU_PROCESS_STATE_FAILED;
    return state(pid, &found) == CUDA_SUCCESS ? static_cast<int>(found) : -1;
  }
};

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class Process {
 public:
  explicit Process(const char* kind) {
    const int fd = ::memfd_create("page", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, sizeof(Page)) != 0) std::exit(2);
    void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) std::exit(2);
    page_ = static_cast<Page*>(memory);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, fd, kPageFd);
    std::string self = "/proc/self/exe", word = "--child", kind_word = kind;
    char* arguments[] = {self.data(), word.data(), kind_word.data(), nullptr};
    if (::posix_spawn(&pid_, self.c_str(), &actions, nullptr, arguments, environ) != 0) pid_ = 0;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(fd);
    for (int i = 0; i < 20'000 && page_->ready == 0 && is_alive(); ++i) pause_ms(1);
  }
  ~Process() {
    (void)end();
    ::munmap(page_, sizeof(Page));
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int pid() const { return pid_; }
  Page& page() const { return *page_; }
  bool is_ready() const { return page_->ready == 1; }
  // The signal that ended the process within a moment; 0: it is alive.
  int signal_that_ended_it() {
    for (int i = 0; i < 5000 && is_alive(); ++i) pause_ms(1);
    return is_alive() ? 0 : WTERMSIG(status_);
  }
  // Lets the process check its memory and end; true if all was right.
  bool end() {
    page_->end = 1;
    for (int i = 0; i < 10'000 && is_alive(); ++i) pause_ms(1);
    if (is_alive()) {
      ::kill(pid_, SIGKILL);
      (void)::waitpid(pid_, &status_, 0);
      pid_ = 0;
    }
    return page_->good == 1 && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

 private:
  bool is_alive() {
    if (pid_ <= 0 || has_ended_) return false;
    has_ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return !has_ended_;
  }

  pid_t pid_ = 0;
  bool has_ended_ = false;
  int status_ = 0;
  Page* page_ = nullptr;
};

// Repeats a call until the process is told to end.
template <typename Call>
int repeat(Page& page, Call call) {
  const WithContext with;
  CUdeviceptr memory = 0;
  if (cuMemAlloc_v2(&memory, kBytes) != CUDA_SUCCESS ||
      cuMemsetD32_v2(memory, kValue, kBytes / 4) != CUDA_SUCCESS) {
    page.ready = 2;
    return 1;
  }
  std::vector<std::uint32_t> words(kBytes / 4);
  while (page.end == 0) {
    call(memory, words);
    ++page.calls;
    page.ready = 1;
  }
  bool good = cuMemcpyDtoH_v2(words.data(), memory, kBytes) == CUDA_SUCCESS;
  for (const std::uint32_t word : words) good = good && word == kValue;
  page.good = good ? 1 : 2;
  return good ? 0 : 1;
}

int sleeps(Page& page) {
  return repeat(page, [](auto, auto&) { pause_ms(1); });
}
int copies(Page& page) {
  return repeat(page, [](CUdeviceptr memory, auto& words) {
    (void)cuMemcpyDtoH_v2(words.data(), memory, kMiB);
  });
}
int asks_for_memory(Page& page) {
  return repeat(page, [](auto, auto&) {
    std::size_t free = 0, total = 0;
    (void)cuMemGetInfo_v2(&free, &total);
  });
}
int queries_an_event(Page& page) {
  CUevent event = nullptr;
  return repeat(page, [&](auto, auto&) {
    if (event == nullptr) (void)cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    (void)cuEventQuery(event);
  });
}
int queries_a_stream(Page& page) {
  return repeat(page, [](auto, auto&) { (void)cuStreamQuery(nullptr); });
}
int synchronizes_a_context(Page& page) {
  return repeat(page, [](auto, auto&) { (void)cuCtxSynchronize(); });
}
int has_managed_memory(Page& page) {
  CUdeviceptr managed = 0;
  return repeat(page, [&](auto, auto&) {
    if (managed == 0) (void)cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL);
    pause_ms(1);
  });
}

int has_work_without_end(Page& page) {
  const WithContext with;
  void* host = nullptr;
  CUdeviceptr at = 0;
  CUstream stream = nullptr;
  const auto wait = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(
      ::dlsym(driver_library(), "cuStreamWaitValue32_v2"));
  const bool made = wait != nullptr && cuMemHostAlloc(&host, 4096, 0) == CUDA_SUCCESS &&
                    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                    cuMemHostGetDevicePointer_v2(&at, host, 0) == CUDA_SUCCESS;
  if (!made) {
    page.ready = 2;
    return 1;
  }
  auto* const word = static_cast<std::uint32_t*>(host);
  *word = 0;
  const bool waits = wait(stream, at, 1, 0) == CUDA_SUCCESS;
  page.ready = waits ? 1 : 2;
  while (page.end == 0) pause_ms(1);
  __atomic_store_n(word, 1U, __ATOMIC_SEQ_CST);
  page.good = cuStreamSynchronize(stream) == CUDA_SUCCESS ? 1 : 2;
  return page.good == 1 ? 0 : 1;
}

constexpr Children kChildren[] = {{"sleeps", sleeps},
                                  {"copies", copies},
                                  {"asks_for_memory", asks_for_memory},
                                  {"queries_an_event", queries_an_event},
                                  {"queries_a_stream", queries_a_stream},
                                  {"synchronizes_a_context", synchronizes_a_context},
                                  {"has_managed_memory", has_managed_memory},
                                  {"has_work_without_end", has_work_without_end}};

int be_parked(const char* kind) {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, kPageFd, 0);
  if (memory == MAP_FAILED || !load_driver() || cuInit(0) != CUDA_SUCCESS) return 1;
  for (const Children& child : kChildren) {
    if (std::strcmp(child.name, kind) == 0) return child.run(*static_cast<Page*>(memory));
  }
  return 1;
}

std::size_t free_memory() {
  const WithContext with;
  std::size_t free = 0, total = 0;
  return cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? free : 0;
}

constexpr const char* kTooOld = "the driver cannot park processes";

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--child") == 0) return be_parked(argv[2]);
  return run_checks();
}

DRIVER_CHECK(a_parked_process_gives_its_memory_back_and_gets_it_again) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process("sleeps");
  EXPECT_TRUE(process.is_ready());
  const std::size_t before = free_memory();
  EXPECT_SAME(park.state_of(process.pid()), CU_PROCESS_STATE_RUNNING);
  EXPECT_OK(park.take_lock(process.pid()));
  EXPECT_SAME(park.state_of(process.pid()), CU_PROCESS_STATE_LOCKED);
  EXPECT_OK(park.take_off(process.pid()));
  EXPECT_SAME(park.state_of(process.pid()), CU_PROCESS_STATE_CHECKPOINTED);
  EXPECT_TRUE(free_memory() >= before + kBytes);
  EXPECT_OK(park.put_back(process.pid()));
  EXPECT_SAME(park.state_of(process.pid()), CU_PROCESS_STATE_LOCKED);
  EXPECT_TRUE(free_memory() < before + kBytes);
  EXPECT_OK(park.give_lock(process.pid()));
  EXPECT_SAME(park.state_of(process.pid()), CU_PROCESS_STATE_RUNNING);
  EXPECT_TRUE(process.end());
}

DRIVER_CHECK(a_step_in_the_wrong_state_is_refused) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process("sleeps");
  EXPECT_TRUE(process.is_ready());
  EXPECT_TRUE(park.take_off(process.pid()) != CUDA_SUCCESS);
  EXPECT_TRUE(park.put_back(process.pid()) != CUDA_SUCCESS);
  EXPECT_TRUE(park.give_lock(process.pid()) != CUDA_SUCCESS);
  EXPECT_OK(park.take_lock(process.pid()));
  EXPECT_TRUE(park.put_back(process.pid()) != CUDA_SUCCESS);
  EXPECT_OK(park.give_lock(process.pid()));
  EXPECT_TRUE(process.end());
}

DRIVER_CHECK(a_copy_waits_while_its_process_is_parked) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process("copies");
  EXPECT_TRUE(process.is_ready());
  EXPECT_OK(park.take_lock(process.pid()));
  EXPECT_OK(park.take_off(process.pid()));
  pause_ms(50);
  const std::uint64_t before = process.page().calls;
  pause_ms(100);
  EXPECT_SAME(process.page().calls.load(), before);
  EXPECT_OK(park.put_back(process.pid()));
  EXPECT_OK(park.give_lock(process.pid()));
  for (int i = 0; i < 5000 && process.page().calls == before; ++i) pause_ms(1);
  EXPECT_TRUE(process.page().calls > before);
  EXPECT_TRUE(process.end());
}

DRIVER_CHECK(a_question_about_memory_answers_while_its_process_is_parked) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process("asks_for_memory");
  EXPECT_TRUE(process.is_ready());
  EXPECT_OK(park.take_lock(process.pid()));
  EXPECT_OK(park.take_off(process.pid()));
  const std::uint64_t before = process.page().calls;
  for (int i = 0; i < 5000 && process.page().calls == before; ++i) pause_ms(1);
  EXPECT_TRUE(process.page().calls > before);
  EXPECT_OK(park.put_back(process.pid()));
  EXPECT_OK(park.give_lock(process.pid()));
  EXPECT_TRUE(process.end());
}

// The process dies when it is locked or when it is checkpointed.
static void expect_death(const char* kind) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process(kind);
  EXPECT_TRUE(process.is_ready());
  (void)park.take_lock(process.pid());
  (void)park.take_off(process.pid());
  EXPECT_SAME(process.signal_that_ended_it(), SIGSEGV);
}

DRIVER_CHECK(a_process_that_queries_an_event_dies) { expect_death("queries_an_event"); }
DRIVER_CHECK(a_process_that_queries_a_stream_dies) { expect_death("queries_a_stream"); }
DRIVER_CHECK(a_process_that_synchronizes_dies) { expect_death("synchronizes_a_context"); }

DRIVER_CHECK(a_process_with_work_without_end_cannot_be_locked) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process("has_work_without_end");
  EXPECT_TRUE(process.is_ready());
  EXPECT_CODE(park.take_lock(process.pid()), CUDA_ERROR_NOT_READY);
  EXPECT_SAME(park.state_of(process.pid()), CU_PROCESS_STATE_RUNNING);
  EXPECT_TRUE(process.end());
}

DRIVER_CHECK(a_process_with_managed_memory_is_refused_and_continues) {
  const Park park;
  if (!park.works()) return skip_check(kTooOld);
  Process process("has_managed_memory");
  EXPECT_TRUE(process.is_ready());
  EXPECT_OK(park.take_lock(process.pid()));
  EXPECT_CODE(park.take_off(process.pid()), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_OK(park.give_lock(process.pid()));
  EXPECT_TRUE(process.end());
}
