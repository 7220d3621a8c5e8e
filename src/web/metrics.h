// The state of the daemon in the text format of Prometheus. Pure.
//
// Labels are indices of GPUs and words of the interface, so the machine bounds their number. Users,
// notes, commands and leases are not labels, unless the site wants it. The driver's name of a GPU
// is escaped.
#pragma once

#include "core/time.h"
#include "proto/methods.h"

#include <cstddef>
#include <optional>
#include <string>

namespace gpurota::web {

struct Snapshot {
  proto::GetInfo::Reply info;
  proto::Status::Reply status;
  proto::ListRequests::Reply queue;
  proto::Health::Reply health;
  std::optional<proto::ListTurns::Reply> turns{};  // empty: the daemon does not support it
};

// Optional series: there are as many as users, leases and pods, and every reader sees the owners.
struct Extra {
  bool per_user = false;
  bool per_lease = false;
  bool per_pod = false;
};
// The most containers on a GPU with series of their own; a node has fewer than 300 pods.
inline constexpr std::size_t kMostPodSeries = 1000;

// Without a snapshot, which means that the daemon does not answer, writes only that.
std::string metrics_text(const std::optional<Snapshot>& snapshot, WallTime now, Extra extra = {});

// Why requests for GPUs cannot be served now: the daemon, the driver or the store. Empty if they
// can.
std::string not_ready_because(const std::optional<Snapshot>& snapshot);

}  // namespace gpurota::web
