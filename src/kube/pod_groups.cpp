#include "kube/pod_groups.h"

#include "watch/container.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::kube {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGroups = "/sys/fs/cgroup";
// The trees with groups of pods: version 2 alone, version 2 beside version 1, and version 1, which
// has the groups in each of its trees.
constexpr const char* kTrees[] = {"", "/unified", "/systemd", "/memory", "/pids"};
// Levels below the group of all pods: the QoS class, the pod.
constexpr int kLevels = 2;
// The most groups of a tree that are read in the search for kubelet's groups.
constexpr std::size_t kMostRead = 4096;

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

// Whether kubelet's groups may be below this one: a group without groups has two links, and kubelet
// has no group in a part of the tree that is another user's.
bool may_have_kubelets(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_nlink != 2 &&
         (info.st_uid == 0 || info.st_uid == ::geteuid());
}

// The control groups in this tree below which a kubelet has all its pods ("kubepods"), wherever its
// cgroupRoot is. kNotFound: the tree is not mounted.
Result<std::vector<std::string>> find_kubelets(const std::string& tree) {
  std::vector<std::string> found, entered{""};
  for (std::size_t i = 0; i < entered.size(); ++i) {
    if (i == kMostRead) return fail(Code::kLimit, "there are too many control groups in " + tree);
    auto names = folders_in(tree + entered[i]);
    if (!names && i > 0 && names.error().code == Code::kNotFound) continue;  // removed meanwhile
    if (!names) return tl::unexpected(std::move(names).error());
    for (const std::string& name : *names) {
      std::string group = fmt::format("{}/{}", entered[i], name);
      if (watch::is_kubelets_name(name)) {
        found.push_back(std::move(group));
      } else if (!watch::is_container_name(name) && may_have_kubelets(tree + group)) {
        entered.push_back(std::move(group));
      }
    }
  }
  return found;
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
    const auto kubelets = find_kubelets(tree);
    if (!kubelets && kubelets.error().code == Code::kNotFound) continue;
    if (!kubelets) return tl::unexpected(kubelets.error());
    for (const std::string& group : *kubelets) {
      has_groups = true;
      GPUROTA_TRY(add_pods(tree, group, kLevels, pods));
    }
  }
  if (!has_groups) return fail(Code::kNotFound, "kubelet has no control groups here");
  return pods;
}

}  // namespace gpurota::kube
