// Reading /proc and files like it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::sys {

// Of errno: we have run short, which says nothing of what was to be read.
bool is_shortage(int error_number);

// The file's content, at most `limit` bytes of it; nullopt, with errno set, if it cannot be read.
std::optional<std::string> read_whole(const std::string& path, std::size_t limit = 1 << 20);

// The path of a file as the kernel shows it, without " (deleted)" behind it: an upgrade replaces
// what is running.
std::string_view without_deleted(std::string_view path);

// The arguments in /proc/PID/cmdline, empty ones included.
std::vector<std::string> parse_cmdline(std::string_view text);

}  // namespace gpurota::sys
