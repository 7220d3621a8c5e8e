// The reason why a request waits, for the control protocol. State thread only.
#pragma once

#include "core/reason.h"
#include "proto/error.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

proto::Reason wire_reason(const Reason& reason);

// The error NoGpu. The message ends with the remedy, for clients that do not know wait_reason.
proto::WireError no_gpu_error(const std::string& message, int free, int total,
                              const std::optional<Reason>& reason);

}  // namespace gpurota::daemon
