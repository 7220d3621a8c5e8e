// Finds a process's container by its control group: engines name the groups that they make. Pure.
//
// Sources: docker, podman, containerd and cri-o with both cgroup drivers (systemd: ENGINE-ID.scope;
// cgroupfs: ENGINE/ID), Kubernetes (kubepods/…/podUID/ID, also below a kubelet's cgroupRoot), LXC
// (lxc.payload.NAME), and every group whose name is an id, wherever it is (docker's
// --cgroup-parent).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::watch {

struct Container {
  std::string engine;  // docker, podman, nerdctl, containerd, crio, lxc, kubernetes
  // The engine's id; for LXC the name; empty where only the pod is known. Only letters, digits,
  // '-', '_' and '.'.
  std::string id;
  std::string pod;    // Kubernetes' UID of the pod, of the same characters; empty: none
  std::string group;  // all of the container's processes are in it or below

  // Whether no other container ever has the same group, even after this one has ended.
  bool is_unique() const { return engine != "lxc"; }
  friend bool operator==(const Container&, const Container&) = default;
};

// The innermost container on the path of a control group. Anybody can make a group with such a
// name, so this alone must never decide in favour of a process.
std::optional<Container> find_container(std::string_view cgroup);
// The innermost container whose group `counts`.
std::optional<Container> find_container(
    std::string_view cgroup, const std::function<bool(const std::string& group)>& counts);

// Whether engines name the group of a container so, or kubelet one of its groups.
bool is_container_name(std::string_view name);
// Whether kubelet names the group of all its pods so: "kubepods" by its cgroup driver cgroupfs,
// "kubepods.slice" by the driver systemd, "kubelet-kubepods.slice" with the cgroupRoot "/kubelet".
bool is_kubelets_name(std::string_view name);
// The innermost container around the group of all pods of a kubelet, for a process in one of these
// pods; for any other process its own container. Empty: there is no container.
std::string container_of_kubelet(std::string_view cgroup);

bool is_pod_uid(std::string_view text);
// The groups that kubelet may have made for the pod with this UID, one for each QoS class.
// `kubelets`: kubelet's group of all pods, whose name says which cgroup driver kubelet has.
std::vector<std::string> pod_groups(const std::string& kubelets, std::string_view uid);

}  // namespace gpurota::watch
