#include "sys/secret.h"

#include <cerrno>
#include <vector>

#include <sys/random.h>

namespace gpurota::sys {

Result<std::string> random_hex(std::size_t digits) {
  std::vector<unsigned char> bytes((digits + 1) / 2);
  for (std::size_t filled = 0; filled < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got < 0 && errno != EINTR) return fail_errno("cannot get random bytes", errno);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex.push_back("0123456789abcdef"[byte >> 4]);
    hex.push_back("0123456789abcdef"[byte & 15]);
  }
  hex.resize(digits);
  return hex;
}

}  // namespace gpurota::sys
