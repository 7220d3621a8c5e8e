// Reading a file or a pipe to its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace gpurota {

// What `fd` has from where it stands, at most `limit` bytes of it; nullopt, with errno set, if it
// cannot be read.
std::optional<std::string> read_all(int fd, std::size_t limit);

}  // namespace gpurota
