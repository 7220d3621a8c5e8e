// Finds the control group that kubelet has made for a pod, wherever kubelet has its groups: at the
// top, below its cgroupRoot, or in the container that kubelet itself runs in
// (docs/design/driver-limits.md). State thread only.
//
// Never looks into groups of containers or pods, except the one that it is told, nor into groups to
// which a user can write: what a pod makes must not be taken for a group of kubelet's.
#pragma once

#include "core/time.h"
#include "ports/control_groups.h"
#include "ports/event_loop.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class PodFinder {
 public:
  // The least time between two searches, which can take some milliseconds. In between, only the
  // known kubelet groups are looked at.
  static constexpr Duration kSearchAgain = std::chrono::seconds(1);

  // Both outlive it.
  PodFinder(ports::EventLoop& loop, ports::ControlGroups& groups) : loop_(loop), groups_(groups) {}

  // The group of the pod with this UID; empty: none was found. `container`: the group of the
  // container that kubelet runs in; empty: none, or not known.
  std::string find(const std::string& uid, const std::string& container);

 private:
  struct Known {
    std::vector<std::string> kubelets;  // the groups of all pods of a kubelet
    std::optional<TimePoint> searched_at;
  };
  std::string find_below(const std::string& group, const std::string& uid);
  std::string find_in(const Known& known, const std::string& uid) const;

  ports::EventLoop& loop_;
  ports::ControlGroups& groups_;
  std::map<std::string, Known> known_;  // by the group that was searched
};

}  // namespace gpurota::daemon
