// A file of an engine's, whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gpurota::containers {

// Lists of containers, and kubelet's file of devices, have some KiB for each.
inline constexpr std::size_t kLargestFile = 16U << 20U;

// Nothing: it cannot be read. Does not wait for who should write into a pipe.
std::optional<std::string> file_text(const std::filesystem::path& path);

}  // namespace gpurota::containers
