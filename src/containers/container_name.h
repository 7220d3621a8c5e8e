// Reads the name and the image of a container from files that engines of root keep. A user's own
// engine keeps its files in the user's home, which the daemon does not read. The name of a podman
// container is also on the command line of its monitor.
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

// Letters, digits and -_./:@ only, so that they can be shown anywhere. Only the name of a pod's
// container has '/'.
struct ContainerName {
  std::string name;   // for a pod's container NAMESPACE/POD/CONTAINER; empty: not known
  std::string image;  // as given to the engine at the start; empty: not known
  friend bool operator==(const ContainerName&, const ContainerName&) = default;
};

inline constexpr std::size_t kLongestName = 3 * 253 + 2;
inline constexpr std::size_t kLongestImage = 512;

// The name of the container with this id (64 hex digits). `root`: the folder used as "/". Reads
// files: call on a worker.
ContainerName read_container_name(const std::filesystem::path& root, std::string_view id);

// The name on the command line of podman's monitor (conmon); empty: the line is another
// container's, or has no name. Pure.
std::string name_by_monitor(const std::vector<std::string>& command, std::string_view id);

}  // namespace gpurota::containers
