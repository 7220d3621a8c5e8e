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

// Discarded: it cannot be read, or is no JSON.
Json json_in(const fs::path& path) {
  return Json::parse(file_text(path).value_or(""), nullptr, false);
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& part_of(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  return paths;
}

fs::path docker_folder(const fs::path& root) {
  const std::string place = text_at(json_in(root / "etc/docker/daemon.json"), "data-root");
  return root / fs::path(place.empty() ? "/var/lib/docker" : place).relative_path();
}

// "100000.100000": the folder of a range of users that the containers' are.
bool is_of_remapped_users(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos;
}

std::optional<ContainerName> by_docker(const fs::path& root, std::string_view id) {
  const fs::path top = docker_folder(root);
  std::vector<fs::path> folders{top};
  for (fs::path& each : entries_of(top)) {
    if (is_of_remapped_users(each)) folders.push_back(std::move(each));
  }
  for (const fs::path& folder : folders) {
    const Json known = json_in(folder / "containers" / id / "config.v2.json");
    if (!known.is_object()) continue;
    std::string name = text_at(known, "Name");
    if (name.starts_with('/')) name.erase(0, 1);
    return ContainerName{std::move(name), text_at(part_of(known, "Config"), "Image")};
  }
  return std::nullopt;
}

// Of a list of containers/storage: what podman and cri-o know of each is text in it.
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
  for (const char* const folder : {"var/lib/containers/storage", "run/containers/storage"}) {
    for (const char* const layers : {"overlay-containers", "vfs-containers", "btrfs-containers"}) {
      for (const char* const list : {"containers.json", "volatile-containers.json"}) {
        if (auto found = in_list(json_in(root / folder / layers / list), id)) return found;
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

// containerd's for kubelet, cri-o's, nerdctl's.
constexpr Annotations kAnnotations[] = {
    {"io.kubernetes.cri.container-name", "io.kubernetes.cri.sandbox-name",
     "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.image-name"},
    {"io.kubernetes.container.name", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace",
     "io.kubernetes.cri-o.ImageName"},
    {"nerdctl/name", nullptr, nullptr, nullptr},
};

std::optional<ContainerName> by_annotations(const Json& bundle) {
  const Json& all = part_of(bundle, "annotations");
  for (const Annotations& keys : kAnnotations) {
    std::string name = text_at(all, keys.container);
    if (name.empty()) continue;
    if (keys.pod)
      name = text_at(all, keys.pod_namespace) + "/" + text_at(all, keys.pod) + "/" + name;
    return ContainerName{std::move(name), keys.image ? text_at(all, keys.image) : ""};
  }
  return std::nullopt;
}

std::optional<ContainerName> by_bundle(const fs::path& root, std::string_view id) {
  // k3s and RKE2 bring a containerd of their own.
  for (const char* const place : {"run/containerd", "run/k3s/containerd"}) {
    for (const fs::path& space : entries_of(root / place / "io.containerd.runtime.v2.task")) {
      if (auto found = by_annotations(json_in(space / id / "config.json"))) return found;
    }
  }
  return by_annotations(
      json_in(root / "run/containers/storage/overlay-containers" / id / "userdata/config.json"));
}

}  // namespace

ContainerName read_container_name(const fs::path& root, std::string_view id) {
  // An annotation names the pod too, a list only the container.
  auto found = by_bundle(root, id);
  if (!found) found = by_docker(root, id);
  if (!found) found = by_storage(root, id);
  if (!found) return {};
  return {plain(std::move(found->name), kLongestName),
          plain(std::move(found->image), kLongestImage)};
}

std::string name_by_monitor(const std::vector<std::string>& command, std::string_view id) {
  const auto after = [&](std::string_view option) -> std::string {
    const auto found = std::find(command.begin(), command.end(), option);
    return found == command.end() || found + 1 == command.end() ? "" : *(found + 1);
  };
  return after("-c") == id ? plain(after("-n"), kLongestName) : "";
}

}  // namespace gpurota::containers
