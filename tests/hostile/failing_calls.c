/* Preloaded into gpurotad: the n-th call of a kind fails, as on a system that has run short. The
 * file $E2E_FAILING_CALLS says which calls fail (struct order; failing_calls.py writes it). The
 * stack of the failed call is written to the file of that name with .where after it. Only the
 * daemon's own calls count: neither those of programs that it starts, nor those that is_of_others()
 * names. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "../e2e/in_daemon.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { NOTHING, MEMORY, THREADS, DESCRIPTORS, DISK };

struct order {
  atomic_int kind;
  atomic_int left;  /* calls of the kind until the one that fails */
  atomic_int times; /* how many calls fail, from that one on */
  atomic_int fired; /* how many have failed */
  atomic_int here;  /* the pid of the daemon that has this library */
};

static struct order* order; /* null: nothing fails */
static pid_t daemon_pid;
static char where[PATH_MAX];
static _Thread_local int inside;
static atomic_int
    runs; /* main() has begun; earlier calls are the loader's or the runtime's, not the daemon's */

static void* next(const char* name) {
  void* const function = dlsym(RTLD_NEXT, name);
  if (!function) abort();
  return function;
}

__attribute__((constructor)) static void begin(void) {
  const char* const place = getenv("E2E_FAILING_CALLS");
  if (!place || !is_daemon()) return;
  daemon_pid = getpid();
  unsetenv("LD_PRELOAD"); /* programs that the daemon starts run without this library */
  (void)snprintf(where, sizeof where, "%s.where", place);
  void* frames[4];
  (void)backtrace(frames, 4); /* loads its library now, while nothing fails */
  const int fd = open(place, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* const mapped = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return;
  order = mapped;
  atomic_store(&order->here, daemon_pid);
}

/* Whether a call belongs to the simulated driver, or is an allocation that the C library makes once
 * and uses without checking for failure (at least in 2.33 to 2.39, in __nss_database_get at a
 * process's first question about accounts). The daemon could not handle a failure of either. */
static int is_of_others(void* const* frames, int count) {
  for (int i = 0; i < count; ++i) {
    Dl_info info;
    if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
    if (strstr(info.dli_fname, "libnvidia-ml") || strstr(info.dli_fname, "libcuda")) return 1;
    if (info.dli_sname && strcmp(info.dli_sname, "__libc_allocate_once_slow") == 0) return 1;
  }
  return 0;
}

static void tell_where(void* const* frames, int count) {
  const int fd =
      (int)syscall(SYS_openat, AT_FDCWD, where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  backtrace_symbols_fd(frames, count, fd);
  (void)!write(fd, "--\n", 3);
  close(fd);
}

/* Whether this call is one that fails. */
static int fails(enum kind kind) {
  if (!order || inside || !atomic_load(&runs) || atomic_load(&order->kind) != (int)kind ||
      getpid() != daemon_pid)
    return 0;
  if (atomic_fetch_sub(&order->left, 1) > 1) return 0;
  inside = 1;
  void* frames[40];
  const int error_number = errno;
  const int count = backtrace(frames, 40);
  int yes = 0;
  if (!is_of_others(frames, count)) {
    yes = atomic_fetch_add(&order->fired, 1) < atomic_load(&order->times);
    if (yes) tell_where(frames, count);
    if (atomic_load(&order->fired) >= atomic_load(&order->times))
      atomic_store(&order->kind, NOTHING);
  }
  errno = error_number;
  inside = 0;
  return yes;
}

/* Memory. */

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static void* no_memory(void) {
  errno = ENOMEM;
  return NULL;
}
void* malloc(size_t size) { return fails(MEMORY) ? no_memory() : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return fails(MEMORY) ? no_memory() : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return fails(MEMORY) ? no_memory() : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return fails(MEMORY) ? no_memory() : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (fails(MEMORY)) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}

/* Threads. */

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (fails(THREADS)) return EAGAIN;
  return ((int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))next(
      "pthread_create"))(thread, attributes, run, argument);
}

pid_t fork(void) {
  if (fails(THREADS)) {
    errno = EAGAIN;
    return -1;
  }
  return ((pid_t(*)(void))next("fork"))();
}

/* Descriptors. */

static int too_many(void) {
  errno = EMFILE;
  return -1;
}

#define FAIL_OPEN(NAME)                                                      \
  int NAME(const char* path, int flags, ...) {                               \
    va_list rest;                                                            \
    va_start(rest, flags);                                                   \
    const mode_t mode = va_arg(rest, mode_t);                                \
    va_end(rest);                                                            \
    if (fails(DESCRIPTORS)) return too_many();                               \
    return ((int (*)(const char*, int, ...))next(#NAME))(path, flags, mode); \
  }
#define FAIL_OPENAT(NAME)                                                                    \
  int NAME(int directory, const char* path, int flags, ...) {                                \
    va_list rest;                                                                            \
    va_start(rest, flags);                                                                   \
    const mode_t mode = va_arg(rest, mode_t);                                                \
    va_end(rest);                                                                            \
    if (fails(DESCRIPTORS)) return too_many();                                               \
    return ((int (*)(int, const char*, int, ...))next(#NAME))(directory, path, flags, mode); \
  }
#define FAIL_FOPEN(NAME)                                                     \
  FILE* NAME(const char* path, const char* mode) {                           \
    if (fails(DESCRIPTORS)) return too_many(), NULL;                         \
    return ((FILE * (*)(const char*, const char*)) next(#NAME))(path, mode); \
  }
#define FAIL_FD(NAME, PARAMETERS, ARGUMENTS)          \
  int NAME PARAMETERS {                               \
    if (fails(DESCRIPTORS)) return too_many();        \
    return ((int(*) PARAMETERS)next(#NAME))ARGUMENTS; \
  }

FAIL_OPEN(open)
FAIL_OPEN(open64)
FAIL_OPENAT(openat)
FAIL_OPENAT(openat64)
/* The functions that open() becomes where the compiler checks its arguments. */
int __open_2(const char* path, int flags) { return open(path, flags); }
int __open64_2(const char* path, int flags) { return open64(path, flags); }
int __openat_2(int directory, const char* path, int flags) {
  return openat(directory, path, flags);
}
int __openat64_2(int directory, const char* path, int flags) {
  return openat64(directory, path, flags);
}
FAIL_FOPEN(fopen)
FAIL_FOPEN(fopen64)
FAIL_FD(accept4, (int fd, struct sockaddr* peer, socklen_t* size, int flags),
        (fd, peer, size, flags))
FAIL_FD(socket, (int family, int type, int protocol), (family, type, protocol))
FAIL_FD(socketpair, (int family, int type, int protocol, int ends[2]),
        (family, type, protocol, ends))
FAIL_FD(pipe2, (int ends[2], int flags), (ends, flags))
FAIL_FD(eventfd, (unsigned count, int flags), (count, flags))
FAIL_FD(epoll_create1, (int flags), (flags))
FAIL_FD(timerfd_create, (int clock, int flags), (clock, flags))
FAIL_FD(memfd_create, (const char* name, unsigned flags), (name, flags))
FAIL_FD(dup, (int fd), (fd))

DIR* opendir(const char* path) {
  if (fails(DESCRIPTORS)) return too_many(), NULL;
  return ((DIR * (*)(const char*)) next("opendir"))(path);
}

#define FAIL_FCNTL(NAME)                                                               \
  int NAME(int fd, int command, ...) {                                                 \
    va_list rest;                                                                      \
    va_start(rest, command);                                                           \
    void* const argument = va_arg(rest, void*);                                        \
    va_end(rest);                                                                      \
    atomic_store(&runs, 1); /* the first that main() does (base/standard_streams.h) */ \
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && fails(DESCRIPTORS))      \
      return too_many();                                                               \
    return ((int (*)(int, int, ...))next(#NAME))(fd, command, argument);               \
  }
FAIL_FCNTL(fcntl)
FAIL_FCNTL(fcntl64)

long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long argument[6];
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_pidfd_open && fails(DESCRIPTORS)) return too_many();
  return ((long (*)(long, ...))next("syscall"))(number, argument[0], argument[1], argument[2],
                                                argument[3], argument[4], argument[5]);
}

/* The disk. */

static int is_on_disk(int fd) {
  struct stat about;
  return order && atomic_load(&order->kind) == DISK && fstat(fd, &about) == 0 &&
         S_ISREG(about.st_mode);
}
static int disk_fails(int fd) { return is_on_disk(fd) && fails(DISK); }
static int no_space(void) {
  errno = ENOSPC;
  return -1;
}

ssize_t write(int fd, const void* data, size_t size) {
  /* Standard error belongs to the program that started the daemon, so writing the log there
   * never fails. */
  if (fd > 2 && disk_fails(fd)) return no_space();
  return ((ssize_t(*)(int, const void*, size_t))next("write"))(fd, data, size);
}
#define FAIL_PWRITE(NAME)                                                                     \
  ssize_t NAME(int fd, const void* data, size_t size, off_t place) {                          \
    if (disk_fails(fd)) return no_space();                                                    \
    return ((ssize_t(*)(int, const void*, size_t, off_t))next(#NAME))(fd, data, size, place); \
  }
FAIL_PWRITE(pwrite)
FAIL_PWRITE(pwrite64)

/* As the kernel reports data that it could not write to the disk. */
static int not_there(void) {
  errno = EIO;
  return -1;
}
#define FAIL_SYNC(NAME)                     \
  int NAME(int fd) {                        \
    if (disk_fails(fd)) return not_there(); \
    return ((int (*)(int))next(#NAME))(fd); \
  }
FAIL_SYNC(fsync)
FAIL_SYNC(fdatasync)
#define FAIL_TRUNCATE(NAME)                              \
  int NAME(int fd, off_t size) {                         \
    if (disk_fails(fd)) return not_there();              \
    return ((int (*)(int, off_t))next(#NAME))(fd, size); \
  }
FAIL_TRUNCATE(ftruncate)
FAIL_TRUNCATE(ftruncate64)

int posix_fallocate(int fd, off_t place, off_t size) {
  if (disk_fails(fd)) return ENOSPC;
  return ((int (*)(int, off_t, off_t))next("posix_fallocate"))(fd, place, size);
}
