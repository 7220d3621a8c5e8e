// Real-world behaviour of programs: each scenario is a habit that has broken a similar library
// somewhere. The lease is 256 MiB of GPU 0, unless a scenario says otherwise. Exit code 0:
// everything was as expected.
#include "allocators.h"
#include "probe.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
char** program_arguments = nullptr;

void make_context(int ordinal = 0) {
  CUcontext context = nullptr;
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  EXPECT(cu.ctx_create(&context, 0, ordinal) == CUDA_SUCCESS);
}

CUdeviceptr take(size_t size) {
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, size) == CUDA_SUCCESS);
  return p;
}

void be_refused(size_t size) {
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, size) == CUDA_ERROR_OUT_OF_MEMORY);
}

// Checks that exactly `limit` can be allocated.
void hold_exactly(size_t limit, size_t step = 16 * kMiB) {
  std::vector<CUdeviceptr> kept;
  CUdeviceptr p = 0;
  while (cu.mem_alloc(&p, step) == CUDA_SUCCESS) kept.push_back(p);
  EXPECT(kept.size() * step == limit);
  for (const CUdeviceptr each : kept) EXPECT(cu.mem_free(each) == CUDA_SUCCESS);
}

void wait_for(pid_t child) {
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

std::vector<char*> run_self(const char* scenario) {
  return {program_arguments[0], const_cast<char*>(scenario), nullptr};
}

// The file of this program; the environment must name it under emulation.
const char* self() {
  const char* said = std::getenv("PROBE_SELF");
  return said != nullptr ? said : "/proc/self/exe";
}

void exhaust() {
  make_context();
  hold_exactly(256 * kMiB);
}

void other_64_are_taken() {
  make_context();
  hold_exactly(192 * kMiB);
}

// --- new processes ---

void fork_then_exec() {
  make_context();
  take(64 * kMiB);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(self(), run_self("other_64_are_taken").data());
    ::_exit(9);
  }
  wait_for(child);
  hold_exactly(192 * kMiB);
}

// The child runs in its parent's memory until it executes a program, so our library must not treat
// the child as a process of its own.
void vfork_then_exec() {
  make_context();
  take(64 * kMiB);
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::vfork();
    if (child == 0) {
      ::syscall(SYS_close_range, 3u, ~0u, 0u);
      ::execv(self(), run_self("nothing").data());
      ::_exit(9);
    }
    wait_for(child);
    be_refused(224 * kMiB);
    EXPECT(cu.mem_free(take(128 * kMiB)) == CUDA_SUCCESS);
  }
}

void spawned() {
  make_context();
  take(64 * kMiB);
  pid_t child = 0;
  EXPECT(::posix_spawn(&child, self(), nullptr, nullptr, run_self("other_64_are_taken").data(),
                       environ) == 0);
  wait_for(child);
}

// Makes as many children as can get a whole piece each. With more children, a child's share would
// depend on how soon the others answer.
void many_forks_at_once() {
  for (int i = 0; i < 3; ++i) {
    if (::fork() != 0) continue;
    make_context();
    for (int round = 0; round < 20; ++round) EXPECT(cu.mem_free(take(8 * kMiB)) == CUDA_SUCCESS);
    ::_exit(0);
  }
  int status = 0;
  for (int i = 0; i < 3; ++i) EXPECT(::wait(&status) > 0 && status == 0);
  exhaust();
}

// Forks while another thread is inside our library and holds its locks.
void fork_while_others_allocate() {
  make_context();
  const Allocators others(4 * kMiB, true);
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      void* found = ::dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
      ::execv(self(), run_self(found != nullptr ? "nothing" : "fail").data());
      ::_exit(9);
    }
    wait_for(child);
  }
}

// A raw clone runs none of libc's fork handlers. The child has the parent's CUDA state, which does
// not work there, with our library or without. But the child must notice that it is not a tenant,
// and must not send on its parent's connection.
void raw_clone() {
  make_context();
  take(64 * kMiB);
  const long child = ::syscall(SYS_clone, static_cast<long>(SIGCHLD), 0, 0, 0, 0);
  if (child == 0) {
    CUdeviceptr p = 0;
    cu.mem_alloc(&p, 128 * kMiB);
    ::syscall(SYS_exit_group, 0);
  }
  wait_for(static_cast<pid_t>(child));
  hold_exactly(192 * kMiB);
}

// --- threads ---

void on_small_stack(void* (*run)(void*), int count) {
  pthread_attr_t attributes;
  EXPECT(::pthread_attr_init(&attributes) == 0);
  EXPECT(::pthread_attr_setstacksize(&attributes, std::size_t{128} * 1024) == 0);
  std::vector<pthread_t> threads(static_cast<size_t>(count));
  for (pthread_t& each : threads) EXPECT(::pthread_create(&each, &attributes, run, nullptr) == 0);
  for (const pthread_t each : threads) ::pthread_join(each, nullptr);
}

// 3000 threads, 500 at a time, with the smallest possible stacks.
void thousands_of_threads() {
  make_context();
  CUcontext context = nullptr;
  EXPECT(cu.primary_retain(&context, 0) == CUDA_SUCCESS);
  for (int wave = 0; wave < 6; ++wave) {
    on_small_stack(
        [](void*) -> void* {
          CUcontext primary = nullptr;
          EXPECT(cu.primary_retain(&primary, 0) == CUDA_SUCCESS);
          EXPECT(cu.ctx_set_current(primary) == CUDA_SUCCESS);
          CUdeviceptr p = 0;
          if (cu.mem_alloc(&p, 1000) == CUDA_SUCCESS) EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
          return nullptr;
        },
        500);
  }
  hold_exactly(256 * kMiB);
}

void lookups_at_once() {
  on_small_stack(
      [](void*) -> void* {
        void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
        EXPECT(library != nullptr);
        EXPECT(::dlsym(library, "cuMemAlloc_v2") == reinterpret_cast<void*>(cu.mem_alloc));
        EXPECT(::dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == reinterpret_cast<void*>(cu.mem_alloc));
        return nullptr;
      },
      200);
}

// A thread that is cancelled while it waits for an absent daemon must not keep a lock of ours. A
// thread cancelled elsewhere would unwind the simulated driver's C++ code.
void cancelled_thread() {
  make_context();
  take(64 * kMiB);
  EXPECT(::write(1, "ready\n", 6) == 6);
  char c = 0;
  EXPECT(::read(0, &c, 1) == 1);
  static std::atomic<bool> begun{false};
  pthread_t thread;
  EXPECT(::pthread_create(
             &thread, nullptr,
             [](void*) -> void* {
               CUdeviceptr p = 0;
               CUcontext primary = nullptr;
               begun.store(true);
               cu.primary_retain(&primary, 0);  // asks the daemon for a context
               cu.mem_alloc(&p, 128 * kMiB);
               for (;;) ::pthread_testcancel();
             },
             nullptr) == 0);
  while (!begun.load()) ::sched_yield();
  ::usleep(20 * 1000);  // probably waiting by then; correct in any case
  EXPECT(::pthread_cancel(thread) == 0 && ::pthread_join(thread, nullptr) == 0);
  be_refused(128 * kMiB);
}

// --- ways to find the driver ---

void* hook() { return ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"); }

// Julia opens every library this way.
void deepbind_on_the_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_DEEPBIND);
  EXPECT(library != nullptr);
  const auto alloc = reinterpret_cast<decltype(cu.mem_alloc)>(::dlsym(library, "cuMemAlloc_v2"));
  make_context();
  CUdeviceptr p = 0;
  EXPECT(alloc(&p, 512 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(alloc(&p, 128 * kMiB) == CUDA_SUCCESS);
}

// A second driver in a namespace without libgpurota.
void dlmopen_of_the_driver() {
  void* library = ::dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  EXPECT(library != nullptr && ::dlsym(library, "cuMemAlloc_v2") == hook());
  // Other libraries get the requested namespace, and missing ones are not found.
  void* other = ::dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
  EXPECT(other != nullptr && ::dlsym(other, "cos") != ::dlsym(RTLD_DEFAULT, "cos"));
  ::dlerror();
  EXPECT(::dlmopen(LM_ID_NEWLM, "libcuda.so.99", RTLD_NOW) == nullptr && ::dlerror() != nullptr);
  exhaust();
}

void opened_by_path() {
  Dl_info info{};
  void* real = ::dlopen("libcuda.so.1", RTLD_NOW);
  EXPECT(::dladdr(::dlsym(real, "cuDriverGetVersion"), &info) != 0);
  void* library = ::dlopen(info.dli_fname, RTLD_NOW);
  EXPECT(library != nullptr && ::dlsym(library, "cuMemAlloc_v2") == hook());
}

// The driver's symbols have no versions: dlvsym finds them with any version.
void asked_with_a_version() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  for (const char* version : {"libcuda.so.1", "GLIBC_2.2.5", "CUDA_12"}) {
    void* found = ::dlvsym(library, "cuMemAlloc_v2", version);
    EXPECT(found == nullptr || found == hook());
    EXPECT(::dlvsym(RTLD_NEXT, "cuMemAlloc_v2", version) == hook());
  }
}

void closed_again() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  for (int i = 0; i < 20; ++i) ::dlclose(library);
  exhaust();
}

// Functions that do not exist are still not found, and dlerror reports that.
void missing_functions() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  ::dlerror();
  EXPECT(::dlsym(library, "cuMemAlloc_v99") == nullptr && ::dlerror() != nullptr);
  EXPECT(::dlsym(library, "cuNothing") == nullptr && ::dlerror() != nullptr);
  EXPECT(::dlsym(library, "nvmlDeviceGetMemoryInfo") == nullptr && ::dlerror() != nullptr);
  for (const char* name : {"", "c", "cu", "cuda", "n", "nv", "nvm", "nvml", "nvmlX", "cuZ"}) {
    EXPECT(::dlsym(library, name) == nullptr);
  }
}

// --- what programs do to themselves ---

void signals_reset() {
  make_context();
  take(64 * kMiB);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction is {};
    if (::sigaction(signal, nullptr, &is) != 0) continue;
    EXPECT(is.sa_handler == SIG_DFL);  // the library installed no handler
    ::signal(signal, SIG_DFL);
  }
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  EXPECT(::pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
  for (int signal = 1; signal < 32; ++signal) EXPECT(::sigismember(&before, signal) == 0);
  ::alarm(1);  // blocked here; must not be delivered on our helper's thread
  hold_exactly(192 * kMiB);
  ::usleep(1100 * 1000);
  sigset_t pending;
  EXPECT(::sigpending(&pending) == 0 && ::sigismember(&pending, SIGALRM) == 1);
}

void close_from_3() { EXPECT(::syscall(SYS_close_range, 3u, ~0u, 0u) == 0); }

void descriptors_closed_before() {
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  CUdevice device = 0;
  size_t total = 0;
  EXPECT(cu.device_total(&total, device) == CUDA_SUCCESS && total == 256 * kMiB);  // connected
  close_from_3();
  exhaust();
}

// Closes all sockets repeatedly while threads allocate and get recalls. Afterwards the limit must
// still be exact.
void connection_closed_while_others_allocate() {
  make_context();
  {
    const Allocators others(80 * kMiB, false);
    for (int round = 0; round < 100; ++round) {
      for (int fd = 3; fd < 1024; ++fd) {
        struct stat info = {};
        if (::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) ::close(fd);
      }
      ::usleep(500);
    }
  }
  hold_exactly(256 * kMiB);
}

// For a process with several threads, the kernel enlarges the descriptor table only after an RCU
// grace period: milliseconds in the middle of a program.
long descriptor_table() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "FDSize:") continue;
  long size = 0;
  status >> size;
  EXPECT(size > 0);
  return size;
}

void descriptor_table_does_not_grow() {
  const long size = descriptor_table();
  exhaust();
  EXPECT(descriptor_table() == size);
}

void environment_and_umask() {
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  ::clearenv();
  ::umask(0123);
  CUcontext context = nullptr;
  EXPECT(cu.ctx_create(&context, 0, 0) == CUDA_SUCCESS);
  hold_exactly(256 * kMiB);
  EXPECT(::umask(0) == 0123);
}

// --- several GPUs: 256 MiB of the first, 128 of the second ---

void two_gpus() {
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  CUcontext contexts[3] = {};
  EXPECT(cu.ctx_create(&contexts[0], 0, 0) == CUDA_SUCCESS);
  EXPECT(cu.ctx_create(&contexts[1], 0, 1) == CUDA_SUCCESS);
  EXPECT(cu.ctx_create(&contexts[2], 0, 0) == CUDA_SUCCESS);
  size_t total = 0;
  EXPECT(cu.device_total(&total, 0) == CUDA_SUCCESS && total == 256 * kMiB);
  EXPECT(cu.device_total(&total, 1) == CUDA_SUCCESS && total == 128 * kMiB);
  EXPECT(cu.ctx_set_current(contexts[1]) == CUDA_SUCCESS);
  const CUdeviceptr on_second = take(96 * kMiB);
  be_refused(64 * kMiB);
  EXPECT(cu.ctx_set_current(contexts[2]) == CUDA_SUCCESS);
  take(128 * kMiB);
  EXPECT(cu.ctx_set_current(contexts[0]) == CUDA_SUCCESS);
  hold_exactly(128 * kMiB);
  EXPECT(cu.mem_free(on_second) == CUDA_SUCCESS);  // memory of a GPU other than the current one
  EXPECT(cu.ctx_destroy(contexts[2]) == CUDA_SUCCESS);
  EXPECT(cu.ctx_set_current(contexts[0]) == CUDA_SUCCESS);
  hold_exactly(256 * kMiB);
  EXPECT(cu.ctx_set_current(contexts[1]) == CUDA_SUCCESS);
  hold_exactly(128 * kMiB);
}

// --- killed ---

// Allocates and frees until it is killed.
void busy() {
  make_context();
  EXPECT(::write(1, "ready\n", 6) == 6);
  for (;;) {
    const CUdeviceptr a = take(100 * kMiB);
    const CUdeviceptr b = take(3 * kMiB);
    EXPECT(cu.mem_free(a) == CUDA_SUCCESS);
    EXPECT(cu.mem_free(b) == CUDA_SUCCESS);
  }
}

// Like busy, with a child that outlives the program, holds whatever the child has inherited, and
// then uses CUDA itself.
void busy_with_a_child() {
  int ends[2];
  EXPECT(::pipe2(ends, O_CLOEXEC) == 0);
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  size_t total = 0;
  EXPECT(cu.device_total(&total, 0) == CUDA_SUCCESS);  // a tenant, with its sockets
  if (::fork() == 0) {
    ::close(ends[1]);
    char c = 0;
    EXPECT(::read(ends[0], &c, 1) == 0);  // until the parent is dead
    ::execv(self(), run_self("exhaust_and_say").data());
  }
  busy();
}

void exhaust_and_say() {
  exhaust();
  EXPECT(::write(1, "held\n", 5) == 5);
}

struct Scenario {
  const char* name;
  void (*run)();
};

constexpr Scenario kScenarios[] = {
    {"nothing", [] {}},
    {"fail", [] { std::exit(8); }},
    {"exhaust", exhaust},
    {"exhaust_and_say", exhaust_and_say},
    {"other_64_are_taken", other_64_are_taken},
    {"fork_then_exec", fork_then_exec},
    {"vfork_then_exec", vfork_then_exec},
    {"spawned", spawned},
    {"many_forks_at_once", many_forks_at_once},
    {"fork_while_others_allocate", fork_while_others_allocate},
    {"raw_clone", raw_clone},
    {"thousands_of_threads", thousands_of_threads},
    {"lookups_at_once", lookups_at_once},
    {"cancelled_thread", cancelled_thread},
    {"deepbind_on_the_driver", deepbind_on_the_driver},
    {"dlmopen_of_the_driver", dlmopen_of_the_driver},
    {"opened_by_path", opened_by_path},
    {"asked_with_a_version", asked_with_a_version},
    {"closed_again", closed_again},
    {"missing_functions", missing_functions},
    {"signals_reset", signals_reset},
    {"descriptors_closed_before", descriptors_closed_before},
    {"connection_closed_while_others_allocate", connection_closed_while_others_allocate},
    {"descriptor_table_does_not_grow", descriptor_table_does_not_grow},
    {"environment_and_umask", environment_and_umask},
    {"two_gpus", two_gpus},
    {"busy", busy},
    {"busy_with_a_child", busy_with_a_child},
};

}  // namespace

int main(int argc, char** argv) {
  program_arguments = argv;
  find_functions();
  for (const Scenario& scenario : kScenarios) {
    if (argc != 2 || std::string_view(argv[1]) != scenario.name) continue;
    scenario.run();
    return 0;
  }
  std::fprintf(stderr, "traps_probe: no such scenario\n");
  return 2;
}
