#include "interposer/os/threads.h"

#include "interposer/os/elf_symbols.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <csignal>

#include <pthread.h>

namespace gpurota::interposer {
namespace {

// As large as a main thread's stack: a driver may translate PTX on it, and static TLS of large
// programs comes out of it. Only pages that are used are ever in memory. Smaller where a limit of
// the program's (RLIMIT_AS, its control group's commitments) leaves no room for it.
constexpr size_t kStackBytes = size_t{8} << 20;
constexpr size_t kLeastStackBytes = size_t{1} << 20;

struct Threads {
  decltype(&pthread_create) create;
  decltype(&pthread_attr_init) attr_init;
  decltype(&pthread_attr_setstacksize) set_stack;
  decltype(&pthread_attr_setdetachstate) set_detached;
};

// Looked for once.
std::atomic<void*> g_create, g_attr_init, g_set_stack, g_set_detached;

template <typename F>
bool find(F* out, std::atomic<void*>& known, const char* name) {
  void* found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = find_libc_symbol(name);
    known.store(found, std::memory_order_relaxed);
  }
  *out = reinterpret_cast<F>(found);
  return found != nullptr;
}

// A test built with the thread sanitizer must use the sanitizer's pthread_create: a thread whose
// start the sanitizer did not see crashes in the sanitizer.
bool find_create(decltype(&pthread_create)* out) {
#ifdef __SANITIZE_THREAD__
  *out = &pthread_create;
  return true;
#else
  return find(out, g_create, "pthread_create");
#endif
}

// Blocks all signals but the two that glibc uses between its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    const uint64_t mask = ~((uint64_t{1} << 31) | (uint64_t{1} << 32));
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &saved_, sizeof(mask));
  }
  ~SignalsBlocked() {
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved_, nullptr, sizeof(saved_));
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  uint64_t saved_ = 0;
};

}  // namespace

bool start_thread(void* (*run)(void*), void* argument) {
  Threads t;
  if (!find_create(&t.create) || !find(&t.attr_init, g_attr_init, "pthread_attr_init") ||
      !find(&t.set_stack, g_set_stack, "pthread_attr_setstacksize") ||
      !find(&t.set_detached, g_set_detached, "pthread_attr_setdetachstate")) {
    return false;
  }
  pthread_attr_t attributes;
  if (t.attr_init(&attributes) != 0) return false;
  t.set_detached(&attributes, PTHREAD_CREATE_DETACHED);
  const SignalsBlocked blocked;
  pthread_t thread;
  for (size_t bytes = kStackBytes; bytes >= kLeastStackBytes; bytes /= 2) {
    t.set_stack(&attributes, bytes);
    if (t.create(&thread, &attributes, run, argument) == 0) return true;
  }
  return false;
}

}  // namespace gpurota::interposer
