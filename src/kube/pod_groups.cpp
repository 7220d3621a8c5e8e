#include "kube/pod_groups.h"

#include "watch/container.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace gpurota::kube {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGroups = "/sys/fs/cgroup";
// The trees with groups of pods: version 2 alone, version 2 beside version 1, and version 1, which
// has the groups in each of its trees.
constexpr const char* kTrees[] = {"", "/unified", "/systemd", "/memory", "/pids"};
// Levels: kubepods, the QoS class, the pod.
constexpr int kLevels = 3;

Result<std::vector<std::string>> folders_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // removed meanwhile
    if (at->is_directory(gone)) names.push_back(at->path().filename());
  }
  if (!error) return names;
  return fail_errno("cannot read control groups, " + path, error.value());
}

// Adds the pods in the groups below `group`, which is one of kubelet's own.
Result<void> add_pods(const std::string& tree, const std::string& group, int levels,
                      std::set<std::string>& pods) {
  const auto container = watch::find_container(group);
  if (container && !container->pod.empty()) {
    pods.insert(container->pod);
    return {};
  }
  if (levels == 0) return {};
  auto names = folders_in(tree + group);
  if (!names) {
    // The group was removed between two reads.
    if (names.error().code == Code::kNotFound) return {};
    return tl::unexpected(std::move(names).error());
  }
  for (const std::string& name : *names) {
    GPUROTA_TRY(add_pods(tree, group + "/" + name, levels - 1, pods));
  }
  return {};
}

}  // namespace

Result<std::set<std::string>> read_pod_groups(const std::string& host_root) {
  std::set<std::string> pods;
  bool has_groups = false;
  for (const char* const name : kTrees) {
    const std::string tree = fmt::format("{}{}{}", host_root, kGroups, name);
    const auto names = folders_in(tree);
    if (!names && names.error().code == Code::kNotFound) continue;  // not mounted
    if (!names) return tl::unexpected(names.error());
    for (const std::string& top : *names) {
      if (!top.starts_with("kubepods")) continue;
      has_groups = true;
      GPUROTA_TRY(add_pods(tree, "/" + top, kLevels - 1, pods));
    }
  }
  if (!has_groups) return fail(Code::kNotFound, "kubelet has no control groups here");
  return pods;
}

}  // namespace gpurota::kube
