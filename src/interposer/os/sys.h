// System calls of libgpurota, and a mutex.
//
// Everything goes through syscall(2): it is in every glibc since 2.2.5, it is not a cancellation
// point (a program may cancel a thread while it is inside one of our hooks), and it needs no newer
// symbol version than an old glibc has. A failed call returns -1 and sets errno, which callers
// protect with ErrnoGuard. Any thread; nothing here allocates.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE  // Linux 5.14, in glibc since 2.35
#define MADV_POPULATE_WRITE 23
#endif

namespace gpurota::interposer {

// Puts errno back as the program left it.
class ErrnoGuard {
 public:
  ErrnoGuard() : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

inline int sys_close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }
inline int sys_gettid() { return static_cast<int>(::syscall(SYS_gettid)); }
inline int sys_getpid() { return static_cast<int>(::syscall(SYS_getpid)); }
inline int sys_fcntl(int fd, int command, long argument) {
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
inline int sys_fstat(int fd, struct stat* out) {
  return static_cast<int>(::syscall(SYS_fstat, fd, out));
}
// The size of a file that cannot be truncated, so that no read of its mapping raises SIGBUS; -1: it
// can be, or there is no such file.
inline off_t sealed_size(int fd) {
  struct stat info;
  if (sys_fstat(fd, &info) != 0) return -1;
  return (sys_fcntl(fd, F_GET_SEALS, 0) & F_SEAL_SHRINK) != 0 ? info.st_size : -1;
}
inline long sys_recvmsg(int fd, msghdr* message, int flags) {
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
inline long sys_sendmsg(int fd, const msghdr* message, int flags) {
  return ::syscall(SYS_sendmsg, fd, message, flags);
}

// A descriptor, and the inode that identifies its file: the program may close descriptors it did
// not open, and soon reuse the number.
struct Socket {
  int fd;
  uint64_t inode;
  bool open;
};

inline int64_t now_ms() {
  timespec t{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

inline int64_t now_us() {
  timespec t{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000 + t.tv_nsec / 1000;
}

// The same without entering the kernel: up to 10 ms behind now_us(), and whatever a library shows
// that replaces the program's clocks.
inline int64_t coarse_us() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000 + t.tv_nsec / 1000;
}

inline timespec to_timespec(int64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
}

inline void sleep_ms(int64_t ms) {
  timespec t = to_timespec(ms);
  ::syscall(SYS_nanosleep, &t, nullptr);
}

// Waits for `events` on `fd` until `deadline_ms`. False at the deadline.
inline bool wait_fd(int fd, short events, int64_t deadline_ms) {
  for (;;) {
    const int64_t left = deadline_ms - now_ms();
    pollfd p{fd, events, 0};
    timespec t = to_timespec(left > 0 ? left : 0);
    const long n = ::syscall(SYS_ppoll, &p, 1, &t, nullptr, 8);
    if (n > 0) return true;
    if (n == 0 && left <= 0) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

inline void futex_wait(std::atomic<uint32_t>* word, uint32_t seen, const timespec* timeout) {
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout, nullptr, 0);
}
inline void futex_wake(std::atomic<uint32_t>* word, int count) {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// The same on a page that processes share. Waiting also works where the page can only be read.
// `timeout_us`: above 0.
inline void futex_wait_shared(const std::atomic<uint32_t>* word, uint32_t seen,
                              int64_t timeout_us) {
  const timespec timeout{static_cast<time_t>(timeout_us / 1'000'000),
                         static_cast<long>(timeout_us % 1'000'000) * 1000};
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}
inline void futex_wake_shared(std::atomic<uint32_t>* word, int count) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

// Maps zeroed memory of our own; nullptr if there is none. `fork_advice`: the madvise() advice on
// what a forked child gets; 0: none.
inline void* map_memory(size_t bytes, int fork_advice) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (fork_advice != 0) ::madvise(p, bytes, fork_advice);
  return p;
}

// A mutex of one word, all zero when free, so that it may live in memory which a fork wipes. Never
// held while the driver is called, except where a comment says why.
class Mutex {
 public:
  bool try_lock() {
    uint32_t free = 0;
    return word_.compare_exchange_strong(free, 1, std::memory_order_acquire);
  }
  void lock() {
    if (try_lock()) return;
    lock_slow();
  }
  bool is_free() const { return word_.load(std::memory_order_acquire) == 0; }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) wake();
  }

 private:
  void lock_slow() {
    ErrnoGuard guard;
    while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(&word_, 2, nullptr);
  }
  void wake() {
    ErrnoGuard guard;
    futex_wake(&word_, 1);
  }
  std::atomic<uint32_t> word_{0};
};

class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace gpurota::interposer
