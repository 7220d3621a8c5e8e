#include "daemon/watch/pod_finder.h"

#include "watch/container.h"

#include <string_view>
#include <utility>

namespace gpurota::daemon {
namespace {

ports::GroupStep step_to_kubelet(std::string_view name) {
  if (watch::is_kubelets_name(name)) return ports::GroupStep::kFound;
  if (watch::is_container_name(name) || name.starts_with(ports::kCgroupPrefix)) {
    return ports::GroupStep::kSkip;
  }
  return ports::GroupStep::kEnter;
}

// Where kubelet has the groups of its pods unless it is told otherwise.
std::vector<std::string> usual_kubelets(const std::string& group) {
  return {group + "/kubepods.slice", group + "/kubepods"};
}

}  // namespace

std::string PodFinder::find(const std::string& uid, const std::string& container) {
  if (uid.empty()) return "";
  std::string found = container.empty() ? "" : find_below(container, uid);
  return found.empty() ? find_below(groups_.root(), uid) : found;
}

std::string PodFinder::find_below(const std::string& group, const std::string& uid) {
  if (group.empty()) return "";
  const auto [place, is_new] = known_.try_emplace(group);
  Known& known = place->second;
  if (is_new) known.kubelets = usual_kubelets(group);
  std::string found = find_in(known, uid);
  const TimePoint now = loop_.now();
  if (!found.empty() || (known.searched_at && now < *known.searched_at + kSearchAgain)) {
    return found;
  }
  known.searched_at = now;
  known.kubelets = groups_.search(group, step_to_kubelet);
  for (std::string& usual : usual_kubelets(group)) known.kubelets.push_back(std::move(usual));
  return find_in(known, uid);
}

std::string PodFinder::find_in(const Known& known, const std::string& uid) const {
  for (const std::string& kubelets : known.kubelets) {
    std::string found = groups_.find(watch::pod_groups(kubelets, uid));
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace gpurota::daemon
