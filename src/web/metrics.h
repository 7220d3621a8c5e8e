// The state of the daemon in the text format of Prometheus. Pure.
//
// Labels are indices of GPUs and words of the interface, so their number is bounded by the machine; no
// user, note, command or lease is one. What a driver calls a GPU is escaped.
#pragma once

#include "core/time.h"
#include "proto/methods.h"

#include <optional>
#include <string>

namespace gpurota::web {

struct Snapshot {
  proto::GetInfo::Reply info;
  proto::Status::Reply status;
  proto::ListRequests::Reply queue;
  proto::Health::Reply health;
  std::optional<proto::ListTurns::Reply> turns{};  // empty: the daemon tells nothing of them
};

// Without a snapshot, because the daemon does not answer, only that.
std::string metrics_text(const std::optional<Snapshot>& snapshot, WallTime now);

// Why requests for GPUs cannot be served now: the daemon, the driver or the store. Empty: they can.
std::string not_ready_because(const std::optional<Snapshot>& snapshot);

}  // namespace gpurota::web
