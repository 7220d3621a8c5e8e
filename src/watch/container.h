// Which container a process is in, by its control group: engines name the groups they make. Pure.
//
// Sources: docker, podman, containerd and cri-o with either of their cgroup drivers (systemd:
// ENGINE-ID.scope; cgroupfs: ENGINE/ID), Kubernetes (kubepods/…/podUID/ID), LXC (lxc.payload.NAME);
// and every group whose name is an id, wherever it is (docker's --cgroup-parent).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::watch {

struct Container {
  std::string engine;  // docker, podman, nerdctl, containerd, crio, lxc, kubernetes
  // As its engine names it; the name for LXC; empty where only the pod is known. Letters, digits,
  // '-', '_', '.'; so is the pod's.
  std::string id;
  std::string pod;    // Kubernetes' UID of it; empty: none
  std::string group;  // all of the container's processes are in it or below

  // Another container never has the same group, also when this one is gone.
  bool is_unique() const { return engine != "lxc"; }
  friend bool operator==(const Container&, const Container&) = default;
};

// The innermost one that the path of a control group goes through. Anybody can make a group with
// such a name: by this alone nothing is decided in favour of a process.
std::optional<Container> find_container(std::string_view cgroup);
// The same of those whose group counts.
std::optional<Container> find_container(
    std::string_view cgroup, const std::function<bool(const std::string& group)>& counts);

}  // namespace gpurota::watch
