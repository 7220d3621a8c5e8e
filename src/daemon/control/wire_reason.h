// Why somebody waits, as it travels. State thread only.
#pragma once

#include "core/reason.h"
#include "proto/error.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

proto::Reason wire_reason(const Reason& reason);

// NoGpu. Its message ends with the remedy, which clients that know no wait_reason show, too.
proto::WireError no_gpu_error(const std::string& message, int free, int total,
                              const std::optional<Reason>& reason);

}  // namespace gpurota::daemon
