// Events about a pod's lease for `kubectl describe pod`, while the pod runs: the lease waits for
// its turn, is over its limit, or was ended. Each is reported once. State thread; touches nothing:
// event_writer.h writes the returned events.
#pragma once

#include "core/time.h"
#include "proto/types.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::kube {

struct PodRef {
  std::string space, name, uid;
  std::string container{};  // empty: all containers
  bool is_claim = false;    // a claim, and not a pod
  bool operator==(const PodRef&) const = default;
};

struct PodEvent {
  PodRef pod;
  bool is_warning = false;
  std::string reason;   // CamelCase, as in Kubernetes
  std::string message;  // a sentence
  bool operator==(const PodEvent&) const = default;
};

// A pod that should have a lease, as seen now.
struct SeenPod {
  std::string key;  // a pod may have several leases
  PodRef ref;
  const proto::Lease* lease = nullptr;         // nullptr: no lease
  bool is_ending = false;                      // its last lease is ending and still has processes
  const proto::Finding* over_limit = nullptr;  // nullptr: not over its limit
  std::optional<LeaseId> first_lease{};        // empty: it never had one
};

class PodEvents {
 public:
  // How long a pod must wait before that is reported: turns take seconds, and an event for each
  // would be too many.
  static constexpr Duration kPatience = std::chrono::seconds(30);
  // How long a pod must be without a lease before the loss is reported: a pod that is being given
  // up also has none for a moment.
  static constexpr Duration kLossPatience = std::chrono::seconds(10);
  // The least time between two events of one kind for one lease.
  static constexpr Duration kPause = std::chrono::minutes(10);
  // The most events of the node in any kPause; further ones are dropped.
  static constexpr std::size_t kMost = 200;

  // `without`: how the event about an ended lease continues if the pod has no other lease, such as
  // "cannot have another now".
  explicit PodEvents(std::string without) : without_(std::move(without)) {}

  std::vector<PodEvent> observe(const std::vector<SeenPod>& pods, TimePoint now);

 private:
  // One condition of the pod that may be reported.
  struct Matter {
    std::optional<TimePoint> since, told;
  };
  struct Matters {
    Matter waits, over_limit, lost;
    std::optional<LeaseId> lease;  // its last lease
  };
  // Whether to report the condition now; `holds`: whether it is true.
  static bool is_news(Matter& matter, bool holds, Duration patience, TimePoint now);
  // Whether to report now that the pod's lease was ended: the pod has had no lease for a while, or
  // has another lease.
  static bool has_lost_lease(Matters& matters, const SeenPod& pod, TimePoint now);

  const std::string without_;
  std::map<std::string, Matters>
      pods_;  // by key and uid of the pod, as a claim may outlive its pod
  TimePoint window_{};
  std::size_t told_in_window_ = 0;
};

}  // namespace gpurota::kube
