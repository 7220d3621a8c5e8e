#include "base/preload.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace gpurota {

std::string preload_problem(const std::string& library) {
  // LD_PRELOAD takes spaces and colons as separators, and has no escape for them.
  if (library.find_first_of(" :") != std::string::npos) {
    return "LD_PRELOAD cannot name it, as there is a space or a colon in its path";
  }
  return ::access(library.c_str(), R_OK) == 0 ? std::string() : std::strerror(errno);
}

}  // namespace gpurota
