#include "containers/container_name.h"

#include "containers/file_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kSigns =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@";

std::string plain(std::string text, std::size_t longest) {
  const bool is_plain =
      text.size() <= longest && text.find_first_not_of(kSigns) == std::string::npos;
  return is_plain ? text : "";
}

// Discarded (Json's state): the file cannot be read, or is not JSON.
Json json_in(const fs::path& root, const fs::path& path) {
  return Json::parse(file_text(root, path).value_or(""), nullptr, false);
}

// Null if it is not there.
const Json& part_of(const Json& object, const char* key) {
  static const Json nothing;
  const auto* const all = object.get_ptr<const Json::object_t*>();
  if (all == nullptr) return nothing;
  const auto found = all->find(key);
  return found == all->end() ? nothing : found->second;
}

std::string text_at(const Json& object, const char* key) {
  const auto* const text = part_of(object, key).get_ptr<const std::string*>();
  return text == nullptr ? "" : *text;
}

// "100000.100000": the folder for containers with a remapped range of users.
bool is_of_remapped_users(const std::string& name) {
  return name.find_first_not_of("0123456789.") == std::string::npos;
}

std::optional<ContainerName> by_docker(const fs::path& root, std::string_view id) {
  const std::string moved = text_at(json_in(root, "/etc/docker/daemon.json"), "data-root");
  const fs::path top = moved.empty() ? "/var/lib/docker" : moved;
  std::vector<fs::path> folders{top};
  for (const std::string& name : names_below(root, top)) {
    if (is_of_remapped_users(name)) folders.push_back(top / name);
  }
  for (const fs::path& folder : folders) {
    const Json known = json_in(root, folder / "containers" / id / "config.v2.json");
    if (!known.is_object()) continue;
    std::string name = text_at(known, "Name");
    if (name.starts_with('/')) name.erase(0, 1);
    return ContainerName{std::move(name), text_at(part_of(known, "Config"), "Image")};
  }
  return std::nullopt;
}

// Finds the container in a list of containers/storage, in which podman and cri-o store the data of
// each container as JSON text.
std::optional<ContainerName> in_list(const Json& list, std::string_view id) {
  if (!list.is_array()) return std::nullopt;
  for (const Json& entry : list) {
    if (text_at(entry, "id") != id) continue;
    const Json known = Json::parse(text_at(entry, "metadata"), nullptr, false);
    return ContainerName{text_at(known, "name"), text_at(known, "image-name")};
  }
  return std::nullopt;
}

std::optional<ContainerName> by_storage(const fs::path& root, std::string_view id) {
  for (const char* const folder : {"/var/lib/containers/storage", "/run/containers/storage"}) {
    for (const char* const layers : {"overlay-containers", "vfs-containers", "btrfs-containers"}) {
      for (const char* const list : {"containers.json", "volatile-containers.json"}) {
        if (auto found = in_list(json_in(root, fs::path(folder) / layers / list), id)) return found;
      }
    }
  }
  return std::nullopt;
}

struct Annotations {
  const char* container;
  const char* pod;
  const char* pod_namespace;
  const char* image;
};

constexpr Annotations kOfContainerd = {
    "io.kubernetes.cri.container-name", "io.kubernetes.cri.sandbox-name",
    "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.image-name"};
constexpr Annotations kOfCrio = {"io.kubernetes.container.name", "io.kubernetes.pod.name",
                                 "io.kubernetes.pod.namespace", "io.kubernetes.cri-o.ImageName"};

std::optional<ContainerName> of_pod(const Json& bundle, const Annotations& keys) {
  const Json& all = part_of(bundle, "annotations");
  const std::string container = text_at(all, keys.container), pod = text_at(all, keys.pod),
                    space = text_at(all, keys.pod_namespace);
  if (container.empty() || pod.empty() || space.empty()) return std::nullopt;
  return ContainerName{space + "/" + pod + "/" + container, text_at(all, keys.image)};
}

// A user who starts a container by another client of containerd chooses its annotations, so a pod's
// annotations count only for kubelet's containers.
std::optional<ContainerName> by_containerd(const fs::path& root, std::string_view id) {
  // k3s and RKE2 have a containerd of their own.
  for (const char* const place : {"/run/containerd", "/run/k3s/containerd"}) {
    const fs::path tasks = fs::path(place) / "io.containerd.runtime.v2.task";
    for (const std::string& space : names_below(root, tasks)) {
      const Json bundle = json_in(root, tasks / space / id / "config.json");
      if (!bundle.is_object()) continue;
      if (space == "k8s.io") return of_pod(bundle, kOfContainerd);
      const std::string name = text_at(part_of(bundle, "annotations"), "nerdctl/name");
      if (!name.empty() && space != "moby") return ContainerName{name, {}};
    }
  }
  return std::nullopt;
}

std::optional<ContainerName> by_crio(const fs::path& root, std::string_view id) {
  return of_pod(json_in(root, fs::path("/run/containers/storage/overlay-containers") / id /
                                  "userdata/config.json"),
                kOfCrio);
}

}  // namespace

ContainerName read_container_name(const fs::path& root, std::string_view id) {
  auto found = by_docker(root, id);
  if (!found) found = by_containerd(root, id);
  // podman's list has the containers' names. cri-o's list has internal names; the names for people
  // are in the bundles.
  if (!found) found = by_storage(root, id);
  if (!found || found->name.starts_with("k8s_")) {
    if (auto pod = by_crio(root, id)) found = std::move(pod);
  }
  if (!found) return {};
  return {plain(std::move(found->name), kLongestName),
          plain(std::move(found->image), kLongestImage)};
}

std::string name_by_monitor(const std::vector<std::string>& command, std::string_view id) {
  const auto after = [&](std::string_view option) -> std::string {
    const auto found = std::find(command.begin(), command.end(), option);
    return found == command.end() || found + 1 == command.end() ? "" : *(found + 1);
  };
  const std::string name = plain(after("-n"), kLongestName);
  // The name of a pod's container has '/', podman's never.
  return after("-c") == id && name.find('/') == std::string::npos ? name : "";
}

}  // namespace gpurota::containers
