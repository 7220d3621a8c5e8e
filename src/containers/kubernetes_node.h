// Facts of Kubernetes on this machine: kubelet's folder, who offers it devices, and whether
// containers may have CDI devices.
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
  bool is_closed = false;  // this user may not look into kubelet's folder
  bool has_kubelet = false;
  bool kubelet_listens = false;      // for device plugins
  std::vector<std::string> plugins;  // files of sockets of device plugins that somebody listens at
  std::vector<std::string> drivers;  // the same, for dynamic resources
  std::map<std::string, std::size_t> known;  // what kubelet has been offered, and how many
  bool plugin_has_given = false;  // gpurota's device plugin gave devices since kubelet was started
  // Kubelet's file of the claims that it has prepared, which has their uids; nothing: it cannot be
  // read.
  std::optional<std::string> claims;
  // A configuration of containerd in which containers may not have CDI devices, though a driver
  // needs it; empty: there is none.
  std::string without_cdi;
};

// `kubelet_dir`: as kubelet's --root-dir. `root`: what "/" is, for containerd's configuration.
// Waits for nobody.
KubernetesNode read_kubernetes_node(const std::filesystem::path& kubelet_dir,
                                    const std::filesystem::path& root);

// Of kubelet's file kubelet_internal_checkpoint: how many devices of each resource were offered.
// kInvalid: it is another file.
Result<std::map<std::string, std::size_t>> parse_checkpoint(std::string_view text);

// Of containerd's configuration: whether containers may have CDI devices. Version 3 is of
// containerd 2, where they may unless it says no; before that they may if it says so.
bool allows_cdi(std::string_view config);

}  // namespace gpurota::containers
