#include "watch/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gpurota::watch {
namespace {

using Text = std::string_view;

constexpr std::size_t kIdLength = 64;
constexpr Text kKubelets = "kubepods";
constexpr Text kSlice = ".slice";

constexpr Text kHex = "0123456789abcdef";
constexpr Text kNameSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

bool is_of(Text signs, Text text) { return text.find_first_not_of(signs) == Text::npos; }

bool is_id(Text text) { return text.size() == kIdLength && is_of(kHex, text); }

// "docker-ID.scope" by systemd, "libpod-ID" below a group of the engine.
std::optional<Container> by_prefix(Text name) {
  constexpr std::array<std::pair<Text, Text>, 6> kPrefixes = {{{"docker-", "docker"},
                                                               {"libpod-", "podman"},
                                                               {"libpod-payload-", "podman"},
                                                               {"nerdctl-", "nerdctl"},
                                                               {"cri-containerd-", "containerd"},
                                                               {"crio-", "crio"}}};
  if (name.ends_with(".scope")) name.remove_suffix(Text(".scope").size());
  for (const auto& [prefix, engine] : kPrefixes) {
    if (name.starts_with(prefix) && is_id(name.substr(prefix.size()))) {
      return Container{std::string(engine), std::string(name.substr(prefix.size())), {}, {}};
    }
  }
  return std::nullopt;
}

std::optional<Container> of_lxc(Text name) {
  constexpr Text kPrefix = "lxc.payload.";
  if (!name.starts_with(kPrefix) || !is_of(kNameSigns, name)) return std::nullopt;
  return Container{"lxc", std::string(name.substr(kPrefix.size())), {}, {}};
}

// A container's, by its name alone.
std::optional<Container> by_name(Text name) {
  auto found = by_prefix(name);
  return found ? found : of_lxc(name);
}

// The engine of a group whose name is only an id: docker below "docker", else a client of
// containerd (docker with --cgroup-parent, nerdctl).
const char* engine_above(Text above) { return above == "docker" ? "docker" : "containerd"; }

// Whether kubelet names one of its groups so: that of all pods, of a QoS class, or by its cgroup
// driver systemd of a pod.
bool is_of_kubelet(Text name) {
  return name.starts_with(kKubelets) ||
         (name.ends_with(kSlice) && name.find("-kubepods") != Text::npos);
}

// "pod1b4e…" by cgroupfs, "kubepods-burstable-pod1b4e_….slice" by systemd, where '_' stands for
// '-'.
std::string pod_of(Text name) {
  const bool by_systemd = is_of_kubelet(name);
  if (name.ends_with(kSlice)) name.remove_suffix(kSlice.size());
  constexpr Text kMark = "pod";
  const std::size_t last = name.rfind('-');
  const bool below = last != Text::npos && name.substr(last + 1).starts_with(kMark) && by_systemd;
  if (below) name.remove_prefix(last + 1);
  if (!name.starts_with(kMark) || name.size() == kMark.size() || !is_of(kNameSigns, name)) {
    return {};
  }
  std::string uid(name.substr(kMark.size()));
  std::replace(uid.begin(), uid.end(), '_', '-');
  return uid;
}

}  // namespace

std::optional<Container> find_container(std::string_view cgroup) {
  return find_container(cgroup, [](const std::string&) { return true; });
}

std::optional<Container> find_container(
    std::string_view cgroup, const std::function<bool(const std::string& group)>& counts) {
  std::optional<Container> found;
  std::string pod;
  bool in_kubernetes = false;
  Text above;
  for (std::size_t begin = 0; begin < cgroup.size();) {
    const std::size_t end = std::min(cgroup.find('/', begin), cgroup.size());
    const Text name = cgroup.substr(begin, end - begin);
    auto here = by_name(name);
    if (!here && is_id(name)) {
      here =
          Container{in_kubernetes ? "kubernetes" : engine_above(above), std::string(name), {}, {}};
    }
    if (in_kubernetes && !here) {
      if (std::string uid = pod_of(name); !uid.empty()) {
        pod = std::move(uid);
        here = Container{"kubernetes", {}, {}, {}};
      }
    }
    if (here) {
      here->pod = pod;
      here->group = cgroup.substr(0, end);
      if (counts(here->group)) found = std::move(here);
    }
    in_kubernetes |= is_of_kubelet(name);
    above = name;
    begin = end + 1;
  }
  return found;
}

bool is_container_name(std::string_view name) {
  return is_id(name) || by_name(name).has_value() || is_of_kubelet(name);
}

bool is_kubelets_name(std::string_view name) {
  return name == kKubelets || name == "kubepods.slice" || name.ends_with("-kubepods.slice");
}

std::string container_of_kubelet(std::string_view cgroup) {
  std::size_t above = cgroup.size();  // the end of what is above kubelet's group
  for (std::size_t begin = 0; begin < cgroup.size();) {
    const std::size_t end = std::min(cgroup.find('/', begin), cgroup.size());
    if (is_kubelets_name(cgroup.substr(begin, end - begin))) above = begin;
    begin = end + 1;
  }
  const auto container = find_container(cgroup.substr(0, above));
  return container ? container->group : "";
}

bool is_pod_uid(std::string_view text) {
  constexpr Text kUidSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  return !text.empty() && is_of(kUidSigns, text);
}

std::vector<std::string> pod_groups(const std::string& kubelets, std::string_view uid) {
  std::vector<std::string> groups;
  if (!is_pod_uid(uid)) return groups;
  std::string stem = kubelets.substr(kubelets.rfind('/') + 1);
  if (!Text(stem).ends_with(kSlice)) {
    for (const char* const qos : {"", "/burstable", "/besteffort"}) {
      groups.push_back(fmt::format("{}{}/pod{}", kubelets, qos, uid));
    }
    return groups;
  }
  stem.resize(stem.size() - kSlice.size());
  std::string unit(uid);
  std::replace(unit.begin(), unit.end(), '-', '_');
  groups.push_back(fmt::format("{}/{}-pod{}.slice", kubelets, stem, unit));
  for (const char* const qos : {"burstable", "besteffort"}) {
    groups.push_back(
        fmt::format("{0}/{1}-{2}.slice/{1}-{2}-pod{3}.slice", kubelets, stem, qos, unit));
  }
  return groups;
}

}  // namespace gpurota::watch
