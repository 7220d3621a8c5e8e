// Events about a pod's lease for `kubectl describe pod`, while the pod runs: the lease waits for
// its turn, holds more than it may, or was ended. Each is reported once. State thread; touches
// nothing, and returns the events for others to write (event_writer.h).
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
  std::string container{};  // empty: it is of all
  bool is_claim = false;    // a claim, and not a pod
  bool operator==(const PodRef&) const = default;
};

struct PodEvent {
  PodRef pod;
  bool is_warning = false;
  std::string reason;   // CamelCase, as Kubernetes has them
  std::string message;  // a sentence
  bool operator==(const PodEvent&) const = default;
};

// A pod that is to have a lease, as it is now.
struct SeenPod {
  std::string key;  // a pod may have several
  PodRef ref;
  const proto::Lease* lease = nullptr;         // nullptr: it has none
  bool is_ending = false;                      // the last one, whose programs are there still
  const proto::Finding* over_limit = nullptr;  // nullptr: it holds no more than it may
  std::optional<LeaseId> first_lease{};        // empty: it had none yet
};

class PodEvents {
 public:
  // So long a pod waits before it is said: turns are of seconds, and nobody wants a line for each.
  static constexpr Duration kPatience = std::chrono::seconds(30);
  // So long a pod is without a lease before the loss is reported: a pod that is given up has none
  // for a moment, either.
  static constexpr Duration kLossPatience = std::chrono::seconds(10);
  // Between two of one kind for one lease.
  static constexpr Duration kPause = std::chrono::minutes(10);
  // Of the node, in any kPause; what is more is not said.
  static constexpr std::size_t kMost = 200;

  // `without`: what becomes of one whose lease was ended and that has no other, "cannot have
  // another now".
  explicit PodEvents(std::string without) : without_(std::move(without)) {}

  std::vector<PodEvent> observe(const std::vector<SeenPod>& pods, TimePoint now);

 private:
  // One thing that may be said of it.
  struct Matter {
    std::optional<TimePoint> since, told;
  };
  struct Matters {
    Matter waits, over_limit, lost;
    std::optional<LeaseId> lease;  // the last one
  };
  // Whether it is to be said now that it holds, or does not.
  static bool is_news(Matter& matter, bool holds, Duration patience, TimePoint now);
  // Whether it is to be said now that its lease was ended, which shows in that it has none for a
  // while, or has another one.
  static bool has_lost_lease(Matters& matters, const SeenPod& pod, TimePoint now);

  const std::string without_;
  std::map<std::string, Matters>
      pods_;  // by the key of the lease and the uid of the pod, as a claim may outlive its pod
  TimePoint window_{};
  std::size_t told_in_window_ = 0;
};

}  // namespace gpurota::kube
