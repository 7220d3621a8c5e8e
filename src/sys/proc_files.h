// Reads /proc and similar files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::sys {

// Whether errno means that we ran out of a resource, which says nothing about the file.
bool is_shortage(int error_number);

// The content of the file, at most `limit` bytes; nullopt, with errno set, if it cannot be read.
std::optional<std::string> read_whole(const std::string& path, std::size_t limit = 1 << 20);

// The path of a file as the kernel shows it, without a trailing " (deleted)": an upgrade replaces
// files that are in use.
std::string_view without_deleted(std::string_view path);

// The arguments in /proc/PID/cmdline, empty ones included.
std::vector<std::string> parse_cmdline(std::string_view text);

}  // namespace gpurota::sys
