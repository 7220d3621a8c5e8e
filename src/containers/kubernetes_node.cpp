#include "containers/kubernetes_node.h"

#include "base/fd.h"
#include "base/read_all.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;

// Kubelet's file has each device of the node and of its pods.
constexpr std::size_t kLargestFile = 16U << 20U;

std::optional<std::string> text_of(const fs::path& path) {
  // Not a pipe that nobody writes into.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? read_all(file.get(), kLargestFile) : std::nullopt;
}

// A socket that was left behind refuses.
bool is_listened_at(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  if (name.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, name.data(), name.size());
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // EAGAIN: there is no room, as it has much to do.
  return socket && (::connect(socket.get(), generic, sizeof address) == 0 || errno == EAGAIN);
}

std::vector<std::string> listeners(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != "kubelet.sock" && at->is_socket(error) && is_listened_at(at->path())) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "key = value" of a line, without spaces and comment.
std::string setting_in(std::string_view line) {
  std::string text;
  for (const char c : line.substr(0, line.find('#'))) {
    if (c != ' ' && c != '\t' && c != '\r') text += c;
  }
  return text;
}

// As Docker's package has it.
bool is_not_for_kubelet(std::string_view config) {
  for (std::size_t at = 0; at < config.size();) {
    const std::size_t end = std::min(config.find('\n', at), config.size());
    const std::string setting = setting_in(config.substr(at, end - at));
    at = end + 1;
    if (setting.starts_with("disabled_plugins=") && setting.find("cri\"") != std::string::npos) {
      return true;
    }
  }
  return false;
}

std::string without_cdi(const fs::path& root) {
  // A distribution that brings its own containerd uses no other that is there.
  for (const char* const path :
       {"var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        "var/lib/rancher/rke2/agent/etc/containerd/config.toml", "etc/containerd/config.toml"}) {
    const auto text = text_of(root / path);
    if (!text || is_not_for_kubelet(*text)) continue;
    return allows_cdi(*text) ? "" : "/" + std::string(path);
  }
  return "";
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
  for (std::size_t at = 0; at < config.size();) {
    const std::size_t end = std::min(config.find('\n', at), config.size());
    const std::string setting = setting_in(config.substr(at, end - at));
    at = end + 1;
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
  node.kubelet_listens = is_listened_at(plugins / "kubelet.sock");
  node.plugins = listeners(plugins);
  node.drivers = listeners(kubelet_dir / "plugins_registry");
  if (const auto text = text_of(plugins / "kubelet_internal_checkpoint")) {
    node.known = parse_checkpoint(*text).value_or(node.known);
  }
  node.without_cdi = without_cdi(root);
  return node;
}

}  // namespace gpurota::containers
