// Files of the machine below a root: "/", or where a container has the machine's. Links there are
// followed as the machine follows them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::containers {

// Lists of containers, and kubelet's file of devices, have some KiB for each.
inline constexpr std::size_t kLargestFile = 16U << 20U;

// Each `path` may begin with '/', which is `root`.

// Whole; nothing: it cannot be read.
std::optional<std::string> file_text(const std::filesystem::path& root,
                                     const std::filesystem::path& path);

// Of a folder, sorted; empty: it cannot be read.
std::vector<std::string> names_below(const std::filesystem::path& root,
                                     const std::filesystem::path& path);

// Where a file really is, for those outside of the root; empty: nowhere.
std::string real_path_below(const std::filesystem::path& root, const std::filesystem::path& path);

}  // namespace gpurota::containers
