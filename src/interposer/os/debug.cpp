#include "interposer/os/debug.h"

#include "interposer/os/sys.h"

#include <cstdarg>
#include <cstdio>

namespace gpurota::interposer {

// The file is opened for each line: the program could close a descriptor that we kept and reuse the
// number, and lines would go into the program's own file.
void debug_line(const char* format, ...) {
  ErrnoGuard guard;
  char line[512];
  const int64_t ms = now_ms();
  const int head = snprintf(line, sizeof(line), "gpurota[%d] %lld.%03d: ", sys_getpid(),
                            static_cast<long long>(ms / 1000), static_cast<int>(ms % 1000));
  va_list arguments;
  va_start(arguments, format);
  const int body =
      vsnprintf(line + head, sizeof(line) - static_cast<size_t>(head) - 1, format, arguments);
  va_end(arguments);
  if (body < 0) return;
  size_t length = static_cast<size_t>(head) + static_cast<size_t>(body);
  if (length > sizeof(line) - 2) length = sizeof(line) - 2;
  line[length++] = '\n';
  const char* path = config().debug_path;
  int fd = 2;
  if (path[0] != '\0') {
    fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path,
                                    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  }
  if (fd < 0) return;
  ::syscall(SYS_write, fd, line, length);
  if (fd != 2) sys_close(fd);
}

}  // namespace gpurota::interposer
