/* Preloaded into gpurotad: shows it the simulated control groups of the simulated machine
 * ($GPUROTA_SIM_DIR/cgroup, sim/state/control_groups.h) as if they were the system's, so that tests
 * need no control group that can be written. A folder is a group; its file cgroup.procs has the
 * processes that were moved there.
 *
 * It also makes the driver slow: the file cgroup-slow beside the folder says how many milliseconds
 * each call about a limit takes at least. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "in_daemon.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char tree[PATH_MAX / 2]; /* empty: not in gpurotad */

__attribute__((constructor)) static void begin(void) {
  const char* const machine = getenv("GPUROTA_SIM_DIR");
  if (is_daemon() && machine) (void)snprintf(tree, sizeof tree, "%s/cgroup", machine);
}

static ssize_t read_file(const char* path, char* text, size_t size) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t length = read(fd, text, size - 1);
  close(fd);
  text[length > 0 ? length : 0] = 0;
  return length;
}

/* 0: it is gone. */
static long parent_of(long pid, char* state) {
  char path[64], text[1024];
  long parent = 0;
  (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  if (read_file(path, text, sizeof text) <= 0) return 0;
  const char* const end = strrchr(text, ')');
  return end && sscanf(end + 1, " %c %ld", state, &parent) == 2 ? parent : 0;
}

static int was_moved_to(const char* group, long pid) {
  char path[PATH_MAX], text[4096];
  (void)snprintf(path, sizeof path, "%s/cgroup.procs", group);
  if (read_file(path, text, sizeof text) <= 0) return 0;
  for (char* at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) {
    if (atol(at) == pid) return 1;
  }
  return 0;
}

/* Writes the group below `from` to which the process itself was moved. */
static int find_moved(const char* from, long pid, char* found, size_t size) {
  DIR* const folder = opendir(from);
  if (!folder) return 0;
  int is_found = was_moved_to(from, pid);
  if (is_found) (void)snprintf(found, size, "%s", from);
  for (struct dirent* each; !is_found && (each = readdir(folder));) {
    char below[PATH_MAX];
    if (each->d_type != DT_DIR || each->d_name[0] == '.') continue;
    if (snprintf(below, sizeof below, "%s/%s", from, each->d_name) >= (int)sizeof below) continue;
    is_found = find_moved(below, pid, found, size);
  }
  closedir(folder);
  return is_found;
}

static void group_of(long pid, char* group, size_t size) {
  for (char state; pid > 1; pid = parent_of(pid, &state)) {
    if (find_moved(tree, pid, group, size)) return;
  }
  (void)snprintf(group, size, "%s", tree);
}

static int file_of(const char* text, size_t length) {
  const int fd = memfd_create("cgroup", MFD_CLOEXEC);
  if (fd < 0 || write(fd, text, length) < 0) return fd;
  (void)lseek(fd, 0, SEEK_SET);
  return fd;
}

/* The processes in the group itself, as the kernel lists them: without those that have ended. */
static int members_of(const char* group) {
  const int fd = file_of("", 0);
  DIR* const processes = opendir("/proc");
  if (!processes) return fd;
  for (struct dirent* each; (each = readdir(processes));) {
    char found[PATH_MAX], state = 'Z';
    if (!isdigit((unsigned char)each->d_name[0])) continue;
    if (parent_of(atol(each->d_name), &state) == 0 || state == 'Z') continue;
    group_of(atol(each->d_name), found, sizeof found);
    if (strcmp(found, group) == 0) dprintf(fd, "%s\n", each->d_name);
  }
  closedir(processes);
  (void)lseek(fd, 0, SEEK_SET);
  return fd;
}

static int ends_with(const char* path, const char* end) {
  const size_t length = strlen(path), wanted = strlen(end);
  return length >= wanted && strcmp(path + length - wanted, end) == 0;
}

/* A descriptor with the content that the system would show; -1: the path is none of ours. */
static int open_shown(const char* path, int flags) {
  char text[PATH_MAX + 64], group[PATH_MAX];
  if (!*tree) return -1;
  if (strcmp(path, "/proc/self/mountinfo") == 0) {
    const int length = snprintf(text, sizeof text, "1 1 0:1 / %s rw - cgroup2 cgroup rw\n", tree);
    return file_of(text, (size_t)length);
  }
  if (strncmp(path, "/proc/", 6) == 0 && ends_with(path, "/cgroup")) {
    const long pid = strncmp(path + 6, "self", 4) == 0 ? getpid() : atol(path + 6);
    if (pid <= 0 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH)) return -1;
    group_of(pid, group, sizeof group);
    const char* const shown = group + strlen(tree);
    const int length = snprintf(text, sizeof text, "0::%s\n", *shown ? shown : "/");
    return file_of(text, (size_t)length);
  }
  if (strncmp(path, tree, strlen(tree)) != 0 || !ends_with(path, "/cgroup.procs")) return -1;
  if ((flags & O_ACCMODE) == O_RDONLY) {
    (void)snprintf(group, sizeof group, "%.*s", (int)(strrchr(path, '/') - path), path);
    return members_of(group);
  }
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_APPEND | O_CREAT, 0644);
  if (fd >= 0 && write(fd, "\n", 1) != 1) return -1; /* what is written has no end of line */
  return fd;
}

static void* next(const char* name) {
  void* const function = dlsym(RTLD_NEXT, name);
  if (!function) abort();
  return function;
}

#define TREE_OPEN(NAME)                                                      \
  int NAME(const char* path, int flags, ...) {                               \
    va_list rest;                                                            \
    va_start(rest, flags);                                                   \
    const mode_t mode = va_arg(rest, mode_t);                                \
    va_end(rest);                                                            \
    const int shown = open_shown(path, flags);                               \
    if (shown >= 0) return shown;                                            \
    return ((int (*)(const char*, int, ...))next(#NAME))(path, flags, mode); \
  }

TREE_OPEN(open)
TREE_OPEN(open64)
TREE_OPEN(__open_2)
TREE_OPEN(__open64_2)

/* The simulated driver looks the group up in each call about a limit. */
int stat(const char* path, struct stat* info) {
  char thread[16] = "", file[PATH_MAX], text[32];
  if (*tree && strncmp(path, tree, strlen(tree)) == 0 && prctl(PR_GET_NAME, thread) == 0 &&
      strcmp(thread, "driver limits") == 0) {
    (void)snprintf(file, sizeof file, "%s-slow", tree);
    if (read_file(file, text, sizeof text) > 0) usleep((useconds_t)atol(text) * 1000);
  }
  return fstatat(AT_FDCWD, path, info, 0);
}

/* The kernel removes a group with its files, unless a process is in it. */
int rmdir(const char* path) {
  char procs[PATH_MAX], first;
  if (*tree && strncmp(path, tree, strlen(tree)) == 0) {
    const int members = members_of(path);
    const int is_used = read(members, &first, 1) == 1;
    close(members);
    if (is_used) {
      errno = EBUSY;
      return -1;
    }
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
    (void)unlink(procs);
  }
  return ((int (*)(const char*))next("rmdir"))(path);
}
