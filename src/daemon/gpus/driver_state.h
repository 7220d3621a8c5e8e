// The last answer of the driver. Plain data.
#pragma once

#include "base/result.h"
#include "ports/gpu_probe.h"

#include <optional>

namespace gpurota::daemon {

struct DriverState {
  std::optional<ports::DriverInfo> info;
  std::optional<Error> error;  // why the driver reports no GPUs; empty: no error
};

}  // namespace gpurota::daemon
