/* Preloaded into gpurotad by the end-to-end tests (helpers.bash). Ends the daemon when the thread
 * of its loop opens a file of another process on which that process can keep it waiting, by holding
 * the lock of its address space. The files that src/ports/processes.h names are allowed; all other
 * files below /proc/PID are for workers. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "in_daemon.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t daemon_pid; /* 0: not in gpurotad, so nothing is checked */

__attribute__((constructor)) static void begin(void) {
  if (!is_daemon()) return;
  daemon_pid = getpid();
  /* Programs that the daemon starts run without this library. */
  unsetenv("LD_PRELOAD");
}

static int may_block(const char* path) {
  static const char* const allowed[] = {"stat", "status", "cgroup", "comm", "children", "ns/user"};
  char* name = NULL;
  if (strncmp(path, "/proc/", 6) != 0) return 0;
  const long pid = strtol(path + 6, &name, 10);
  if (name == path + 6 || pid == daemon_pid || strcmp(name, "/") == 0 || *name == 0) return 0;
  if (strncmp(name, "/task/", 6) == 0) { /* a thread's files are like the process's */
    const char* const file = strchr(name + 6, '/');
    if (file != NULL) name = (char*)file;
  }
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; ++i) {
    if (strcmp(name + 1, allowed[i]) == 0) return 0;
  }
  return 1;
}

static void check(int directory, const char* path) {
  if (daemon_pid == 0 || getpid() != daemon_pid || syscall(SYS_gettid) != daemon_pid) return;
  char whole[PATH_MAX + 64];
  if (path[0] != '/' && directory != AT_FDCWD) {
    char link[64], place[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    const ssize_t size = readlink(link, place, sizeof place - 1);
    if (size <= 0) return;
    place[size] = 0;
    if ((size_t)snprintf(whole, sizeof whole, "%s/%s", place, path) >= sizeof whole) return;
    path = whole;
  }
  if (!may_block(path)) return;
  dprintf(2, "loop guard: the thread of the loop opens %s\n", path);
  abort();
}

static void* next(const char* name) {
  void* const function = dlsym(RTLD_NEXT, name);
  if (!function) abort();
  return function;
}

#define GUARD_OPEN(NAME)                                                     \
  int NAME(const char* path, int flags, ...) {                               \
    va_list rest;                                                            \
    va_start(rest, flags);                                                   \
    const mode_t mode = va_arg(rest, mode_t);                                \
    va_end(rest);                                                            \
    check(AT_FDCWD, path);                                                   \
    return ((int (*)(const char*, int, ...))next(#NAME))(path, flags, mode); \
  }
#define GUARD_OPENAT(NAME)                                                                   \
  int NAME(int directory, const char* path, int flags, ...) {                                \
    va_list rest;                                                                            \
    va_start(rest, flags);                                                                   \
    const mode_t mode = va_arg(rest, mode_t);                                                \
    va_end(rest);                                                                            \
    check(directory, path);                                                                  \
    return ((int (*)(int, const char*, int, ...))next(#NAME))(directory, path, flags, mode); \
  }
#define GUARD_FOPEN(NAME)                                                    \
  FILE* NAME(const char* path, const char* mode) {                           \
    check(AT_FDCWD, path);                                                   \
    return ((FILE * (*)(const char*, const char*)) next(#NAME))(path, mode); \
  }

GUARD_OPEN(open)
GUARD_OPEN(open64)
GUARD_OPEN(__open_2)
GUARD_OPEN(__open64_2)
GUARD_OPENAT(openat)
GUARD_OPENAT(openat64)
GUARD_OPENAT(__openat_2)
GUARD_OPENAT(__openat64_2)
GUARD_FOPEN(fopen)
GUARD_FOPEN(fopen64)

DIR* opendir(const char* path) {
  check(AT_FDCWD, path);
  return ((DIR * (*)(const char*)) next("opendir"))(path);
}
