// Reads a file or a pipe to its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace gpurota {

// Reads `fd` from its current offset, at most `limit` bytes; nullopt, with errno set, on failure.
std::optional<std::string> read_all(int fd, std::size_t limit);

}  // namespace gpurota
