// Reads the name of a container, and its image, as the engines of root keep them in files of
// root's. A user's own engine keeps its files in the user's home, where nobody reads for others;
// the name of a podman container is on the command line of its monitor as well.
//
// Sources, as found with Debian's docker 20.10, podman 4.3 and containerd 1.6: docker's
// DATA-ROOT/containers/ID/config.v2.json (with userns-remap below UID.GID); podman's and cri-o's
// list of containers (containers/storage, containers.json and volatile-containers.json); the
// annotations of the bundle that containerd's shim and cri-o give their runtime.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::containers {

// Letters, digits and -_./:@ only, so that it can be shown anywhere. Only a pod's container has '/'
// in its name.
struct ContainerName {
  std::string name;   // of a pod's container NAMESPACE/POD/CONTAINER; empty: not known
  std::string image;  // as whoever started it called the image; empty: not known
  friend bool operator==(const ContainerName&, const ContainerName&) = default;
};

inline constexpr std::size_t kLongestName = 3 * 253 + 2;
inline constexpr std::size_t kLongestImage = 512;

// Of the container with this id (64 hex digits). `root`: what "/" is. Reads files: on a worker.
ContainerName read_container_name(const std::filesystem::path& root, std::string_view id);

// Of the command line of podman's monitor (conmon); empty: it is another container's, or does not
// say it. Pure.
std::string name_by_monitor(const std::vector<std::string>& command, std::string_view id);

}  // namespace gpurota::containers
