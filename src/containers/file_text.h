// Files of the machine below a root: "/", or where a container sees the machine's. Links are
// resolved relative to that root.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::containers {

// The largest files read are lists of containers and kubelet's file of devices, with some KiB for
// each entry.
inline constexpr std::size_t kLargestFile = 16U << 20U;

// Each `path` may begin with '/', which is `root`.

// The whole file; nothing: it cannot be read.
std::optional<std::string> file_text(const std::filesystem::path& root,
                                     const std::filesystem::path& path);

// The names in a folder, sorted; empty: it cannot be read.
std::vector<std::string> names_below(const std::filesystem::path& root,
                                     const std::filesystem::path& path);

// The path of a file with all links resolved, for processes outside the root; empty: there is no
// such file.
std::string real_path_below(const std::filesystem::path& root, const std::filesystem::path& path);

}  // namespace gpurota::containers
