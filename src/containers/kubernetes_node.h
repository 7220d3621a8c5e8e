// Facts about Kubernetes on this machine: kubelet's folder, which plugins offer devices, and
// whether containers may have CDI devices.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::containers {

struct KubernetesNode {
  bool is_closed = false;  // this user may not read kubelet's folder
  bool has_kubelet = false;
  bool kubelet_listens = false;              // for device plugins
  std::vector<std::string> plugins;          // socket files of device plugins that listen
  std::vector<std::string> drivers;          // the same, for dynamic resources
  std::map<std::string, std::size_t> known;  // resources offered to kubelet, and how many of each
  bool plugin_has_given = false;  // gpurota's device plugin gave devices since kubelet was started
  // Kubelet's file of the claims that it has prepared, with their uids; nothing: it cannot be read.
  std::optional<std::string> claims;
  // The path of a containerd configuration that denies CDI devices to containers, although a driver
  // needs them; empty: there is none.
  std::string without_cdi;
};

// `kubelet_dir`: kubelet's --root-dir. `root`: the folder used as "/", for containerd's
// configuration. Never waits for another process.
KubernetesNode read_kubernetes_node(const std::filesystem::path& kubelet_dir,
                                    const std::filesystem::path& root);

// From kubelet's file kubelet_internal_checkpoint: how many devices of each resource were offered.
// kInvalid: it is another file.
Result<std::map<std::string, std::size_t>> parse_checkpoint(std::string_view text);

// Whether a containerd configuration allows CDI devices in containers. A configuration of version 3
// (containerd 2) allows CDI devices unless it forbids them; an earlier version forbids them unless
// it allows them.
bool allows_cdi(std::string_view config);

}  // namespace gpurota::containers
