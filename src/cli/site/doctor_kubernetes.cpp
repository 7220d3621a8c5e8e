#include "cli/site/doctor_kubernetes.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace gpurota::cli {
namespace {

using containers::KubernetesNode;
using proto::Check;
using proto::CheckStatus;

constexpr const char* kDriverSocket =
    "gpurota.dev-reg.sock";  // as src/kube/dra/driver.cpp names it

bool is_ours(const std::string& socket) { return socket.starts_with("gpurota-"); }

bool has_driver(const KubernetesNode& node) {
  return std::find(node.drivers.begin(), node.drivers.end(), kDriverSocket) != node.drivers.end();
}

bool has_plugin(const KubernetesNode& node) {
  return std::any_of(node.plugins.begin(), node.plugins.end(), is_ours);
}

Check check_kubelet(const KubernetesNode& node, const std::string& kubelet_dir) {
  const std::string where = display_text(kubelet_dir, 120);
  if (!node.has_kubelet) {
    return {"kubelet", CheckStatus::kError, fmt::format("there is no {}", where),
            "run this on a node; where kubelet has another --root-dir: gpurota doctor "
            "--kubelet-dir DIR"};
  }
  if (node.is_closed) {
    return {"kubelet", CheckStatus::kError, fmt::format("{} is closed to this user", where),
            fmt::format("sudo gpurota doctor --kubelet-dir {}", where)};
  }
  if (!node.kubelet_listens) {
    return {"kubelet", CheckStatus::kError,
            fmt::format("nobody listens at {}/device-plugins/kubelet.sock", where),
            "systemctl status kubelet"};
  }
  return {"kubelet", CheckStatus::kOk, fmt::format("hears device plugins in {}", where),
          std::nullopt};
}

// "gpurota.dev/gpu (8), gpurota.dev/memory (640)". Resources with other names (--turn-resource) are
// not included.
std::string offered_text(const KubernetesNode& node) {
  std::string text;
  for (const auto& [resource, devices] : node.known) {
    if (!resource.starts_with("gpurota.dev/")) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", display_text(resource, 80), devices);
  }
  return text;
}

// Until kubelet restarts, it keeps the resources of a device plugin, even if the plugin is gone and
// pods now get their GPUs through claims.
bool remembers_plugin(const KubernetesNode& node) {
  return node.plugin_has_given || !offered_text(node).empty();
}

Check check_plugin(const KubernetesNode& node) {
  if (has_plugin(node)) {
    const std::string offered = offered_text(node);
    if (!offered.empty()) {
      return {"device plugin", CheckStatus::kOk, "kubelet was offered " + offered, std::nullopt};
    }
    return {
        "device plugin", CheckStatus::kWarning,
        "gpurota-device-plugin runs, and kubelet's list has no gpurota.dev/…",
        "unless its resources have other names: journalctl -u gpurota-device-plugin, or kubectl "
        "logs of its pod"};
  }
  if (has_driver(node) && remembers_plugin(node)) {
    return {"device plugin", CheckStatus::kWarning,
            "is no longer running, and kubelet has not been restarted since: pods that ask for "
            "its resources stay CreateContainerConfigError",
            "systemctl restart kubelet (k3s, RKE2 and others: their own service) on this node"};
  }
  if (has_driver(node)) {
    return {"device plugin", CheckStatus::kOk, "is not running, which claims do not need",
            std::nullopt};
  }
  return {"device plugin", CheckStatus::kError,
          "neither gpurota-device-plugin nor gpurota-dra runs on this node",
          "kubectl label node NODE gpurota.dev/node=true, with a DaemonSet of either; or systemctl "
          "enable --now gpurota-device-plugin"};
}

Check check_driver(const KubernetesNode& node) {
  if (!has_driver(node)) {
    return {"claims", CheckStatus::kOk, "gpurota-dra is not running: pods ask by resources only",
            std::nullopt};
  }
  if (node.without_cdi.empty()) {
    return {"claims", CheckStatus::kOk, "gpurota-dra runs", std::nullopt};
  }
  return {
      "claims", CheckStatus::kWarning,
      fmt::format("gpurota-dra runs, and {} has no enable_cdi = true, without which a containerd "
                  "before 2.0 gives containers no GPU",
                  node.without_cdi),
      "enable_cdi = true under [plugins.\"io.containerd.grpc.v1.cri\"], then systemctl restart "
      "containerd"};
}

// NVIDIA's own plugin counts whole GPUs, independent of leases.
std::optional<Check> check_others(const KubernetesNode& node) {
  std::string others;
  for (const std::string& socket : node.plugins) {
    if (socket.starts_with("nvidia")) others += fmt::format(" device-plugins/{}", socket);
  }
  for (const std::string& socket : node.drivers) {
    if (socket.starts_with("gpu.nvidia.com")) others += fmt::format(" plugins_registry/{}", socket);
  }
  if (others.empty()) return std::nullopt;
  return Check{
      "other plugins", CheckStatus::kError,
      fmt::format("another plugin gives pods the same GPUs without a lease:{}",
                  display_text(others, 300)),
      "keep NVIDIA's device plugin and its driver for claims off this node (a node selector, "
      "or the operator's nvidia.com/gpu.deploy.device-plugin=false)"};
}

}  // namespace

std::vector<Check> check_kubernetes(const KubernetesNode& node, const std::string& kubelet_dir) {
  std::vector<Check> checks = {check_kubelet(node, kubelet_dir)};
  if (!node.has_kubelet || node.is_closed) return checks;
  checks.push_back(check_plugin(node));
  checks.push_back(check_driver(node));
  if (auto others = check_others(node)) checks.push_back(std::move(*others));
  return checks;
}

namespace {

// A lease of gpurota-dra's (src/kube/dra/claim.h) whose claim kubelet has not prepared, or has
// forgotten.
bool is_orphan(const proto::Lease& lease, const KubernetesNode& node) {
  constexpr std::string_view kClaims = "claim-";
  const std::string allocation = lease.allocation.value_or("");
  if (!node.claims || !allocation.starts_with(kClaims)) return false;
  const std::string uid = allocation.substr(kClaims.size(), allocation.find('.') - kClaims.size());
  return node.claims->find(uid) == std::string::npos;
}

}  // namespace

Check check_pods(const std::vector<proto::Lease>& leases, const KubernetesNode& node) {
  std::size_t all = 0, named = 0, orphans = 0;
  std::string ids;
  for (const proto::Lease& lease : leases) {
    if (lease.kind != proto::LeaseKind::kPod) continue;
    if (is_orphan(lease, node)) {
      ++orphans;
      ids += " " + to_string(lease.lease_id);
      continue;
    }
    ++all;
    if (lease.pod) ++named;
  }
  const std::string count =
      fmt::format("{} container{} a lease", all, all == 1 ? " has" : "s have");
  if (orphans > 0) {
    return {
        "pods", CheckStatus::kWarning,
        fmt::format("{}, and {} of {} that kubelet does not know", count,
                    orphans == 1 ? "1 lease is" : fmt::format("{} leases are", orphans),
                    orphans == 1 ? "a claim" : "claims"),
        fmt::format("gpurota-dra ends it within two minutes if the claim is gone; else: gpurota "
                    "release{}",
                    ids)};
  }
  if (named == all) return {"pods", CheckStatus::kOk, count, std::nullopt};
  return {"pods", CheckStatus::kWarning,
          fmt::format("{}, and of {} nobody has said whose it is", count, all - named),
          "a container that has just started is named within seconds; else kubelet's pod-resources "
          "socket cannot be reached by the plugin"};
}

}  // namespace gpurota::cli
