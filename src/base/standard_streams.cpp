#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace gpurota {

void occupy_closed_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // open() takes the lowest free number, which is this one. The wrong direction, so that any use
    // fails with EBADF.
    const int way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", way | O_CLOEXEC) < 0) return;
  }
}

}  // namespace gpurota
