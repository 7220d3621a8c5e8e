/* Preloaded into gpurotad: a disk that blocks while the file $E2E_STUCK_DISK exists. A thread that
 * waits for the disk writes a line into the file of that name with .waiting after it. The loop's
 * thread must not wait: if it does, the daemon ends. Reads of job logs also block, while the file
 * $E2E_STUCK_DISK.logs exists. */
#define _GNU_SOURCE
#include "in_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_while(const char* place) {
  if (!place || !is_daemon()) return;
  if (access(place, F_OK) != 0) return;
  if (syscall(SYS_gettid) == getpid()) {
    dprintf(2, "stuck disk: the thread of the loop waits for it\n");
    abort();
  }
  char name[PATH_MAX];
  (void)snprintf(name, sizeof name, "%s.waiting", place);
  const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dprintf(fd, "waiting\n");
  close(fd);
  while (access(place, F_OK) == 0) usleep(5000);
}

static void wait_for_disk(void) { wait_while(getenv("E2E_STUCK_DISK")); }

static int is_job_log(int fd) {
  char link[64], path[PATH_MAX];
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, "/log.a") != NULL || strstr(path, "/log.b") != NULL;
}

ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  const char* const place = getenv("E2E_STUCK_DISK");
  char name[PATH_MAX];
  if (place && is_job_log(fd)) {
    (void)snprintf(name, sizeof name, "%s.logs", place);
    wait_while(name);
  }
  return syscall(SYS_pread64, fd, data, bytes, offset);
}

int fsync(int fd) {
  wait_for_disk();
  return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  wait_for_disk();
  return (int)syscall(SYS_fdatasync, fd);
}
