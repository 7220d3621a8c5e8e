// Reading a file or a pipe to its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace gpurota {

// Reads `fd` from its present offset, at most `limit` bytes; nullopt, with errno set, if it cannot
// be read.
std::optional<std::string> read_all(int fd, std::size_t limit);

}  // namespace gpurota
