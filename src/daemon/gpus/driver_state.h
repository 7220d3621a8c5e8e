// The driver, as it answered last. Plain data.
#pragma once

#include "base/result.h"
#include "ports/gpu_probe.h"

#include <optional>

namespace gpurota::daemon {

struct DriverState {
  std::optional<ports::DriverInfo> info;
  std::optional<Error> error;  // why there are no GPUs, if there are none because of that
};

}  // namespace gpurota::daemon
