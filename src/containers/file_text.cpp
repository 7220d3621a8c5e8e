#include "containers/file_text.h"

#include "base/fd.h"
#include "base/read_all.h"

#include <fcntl.h>

namespace gpurota::containers {

std::optional<std::string> file_text(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? read_all(file.get(), kLargestFile) : std::nullopt;
}

}  // namespace gpurota::containers
