#include "base/read_all.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace gpurota {

std::optional<std::string> read_all(int fd, std::size_t limit) {
  std::string content;
  std::size_t size = 0;
  while (size < limit) {
    content.resize(std::min(limit, size + 4096));
    const ssize_t got = ::read(fd, content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  content.resize(size);
  return content;
}

}  // namespace gpurota
