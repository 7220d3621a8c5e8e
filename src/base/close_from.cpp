#include "base/close_from.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota {

// By syscall(): the C library has close_range() only since glibc 2.34.
void close_from(int first) {
  if (::syscall(__NR_close_range, first, ~0U, 0) != 0) close_each_from(first);
}

void close_each_from(int first) {
  rlimit limit{};
  constexpr int kMost = 1 << 20;
  int end = kMost;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kMost) {
    end = static_cast<int>(limit.rlim_cur);
  }
  for (int fd = first; fd < end; ++fd) (void)::close(fd);
}

}  // namespace gpurota
