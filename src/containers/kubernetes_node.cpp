#include "containers/kubernetes_node.h"

#include "containers/file_text.h"
#include "ipc/unix_socket.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPluginsState = "var/lib/gpurota-kubernetes/allocations.textproto";

std::vector<std::string> listeners(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != "kubelet.sock" && at->is_socket(error) &&
        ipc::answers(at->path().string(), SOCK_STREAM)) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The lines of a file without comments and without spaces: "key=value".
std::vector<std::string> settings_in(std::string_view config) {
  std::vector<std::string> settings(1);
  bool in_comment = false;
  for (const char c : config) {
    if (c == '\n') settings.emplace_back();
    in_comment = c != '\n' && (in_comment || c == '#');
    if (!in_comment && std::string_view(" \t\r\n").find(c) == std::string_view::npos) {
      settings.back() += c;
    }
  }
  return settings;
}

// Whether CRI is disabled, as in the configuration of Docker's package.
bool is_not_for_kubelet(std::string_view config) {
  const std::vector<std::string> settings = settings_in(config);
  return std::any_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.starts_with("disabled_plugins=") && setting.find("cri\"") != std::string::npos;
  });
}

std::string without_cdi(const fs::path& root) {
  // A distribution with its own containerd does not use another one.
  for (const char* const path :
       {"var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        "var/lib/rancher/rke2/agent/etc/containerd/config.toml", "etc/containerd/config.toml"}) {
    const auto text = file_text(root, path);
    if (!text || is_not_for_kubelet(*text)) continue;
    return allows_cdi(*text) ? "" : "/" + std::string(path);
  }
  return "";
}

// Compares with kubelet's socket, which kubelet makes when it starts.
bool plugin_has_given(const fs::path& kubelet_socket, const fs::path& root) {
  std::error_code error;
  const auto given = fs::last_write_time(root / kPluginsState, error);
  if (error) return false;
  const auto started = fs::last_write_time(kubelet_socket, error);
  return !error && given > started;
}

}  // namespace

Result<std::map<std::string, std::size_t>> parse_checkpoint(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const nlohmann::json::json_pointer place("/Data/RegisteredDevices");
  if (json.is_discarded() || !json.contains(place)) {
    return fail(Code::kInvalid, "it is not kubelet's list of devices");
  }
  std::map<std::string, std::size_t> known;
  const auto& devices = json.at(place);
  if (devices.is_null()) return known;
  if (!devices.is_object()) return fail(Code::kInvalid, "its devices are not by resource");
  for (const auto& [resource, ids] : devices.items()) {
    known[resource] = ids.is_array() ? ids.size() : 0;
  }
  return known;
}

bool allows_cdi(std::string_view config) {
  bool allows = false;
  for (const std::string& setting : settings_in(config)) {
    if (setting == "enable_cdi=false") return false;
    if (setting == "enable_cdi=true" || setting == "version=3") allows = true;
  }
  return allows;
}

KubernetesNode read_kubernetes_node(const fs::path& kubelet_dir, const fs::path& root) {
  KubernetesNode node;
  const fs::path plugins = kubelet_dir / "device-plugins";
  std::error_code error;
  node.has_kubelet = fs::is_directory(kubelet_dir, error);
  node.is_closed = node.has_kubelet && ::access(plugins.c_str(), R_OK | X_OK) != 0 &&
                   (errno == EACCES || errno == EPERM);
  if (!node.has_kubelet || node.is_closed) return node;
  node.kubelet_listens = ipc::answers((plugins / "kubelet.sock").string(), SOCK_STREAM);
  node.plugins = listeners(plugins);
  node.drivers = listeners(kubelet_dir / "plugins_registry");
  if (const auto text = file_text({}, plugins / "kubelet_internal_checkpoint")) {
    node.known = parse_checkpoint(*text).value_or(node.known);
  }
  node.plugin_has_given = plugin_has_given(plugins / "kubelet.sock", root);
  node.claims = file_text({}, kubelet_dir / "dra_manager_state");
  node.without_cdi = without_cdi(root);
  return node;
}

}  // namespace gpurota::containers
