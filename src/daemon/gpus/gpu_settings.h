// The settings in effect for one GPU: the configuration, overridden by settings that an
// administrator made while the daemon ran. Pure.
#pragma once

#include "config/config.h"
#include "core/gpu.h"
#include "ports/store.h"

#include <chrono>
#include <optional>

namespace gpurota::daemon {

struct GpuSettings {
  Bytes capacity;       // what leases of all kinds may have of it
  Bytes turn_capacity;  // the part of `capacity` for swap leases if there are no slices
  config::Turns::Mode mode = config::Turns::Mode::kAuto;
  std::optional<std::chrono::milliseconds> quantum;  // empty: derived from the cost of moving
};

GpuSettings settings_of(const GpuInfo& gpu, const config::Config& config,
                        const ports::StoredGpuState& set);

// The memory that may be in use without a listed process, as the site's configuration states;
// empty: not configured.
std::optional<Bytes> unlisted_of(const GpuInfo& gpu, const config::GpuRules& site);

const char* to_string(config::Turns::Mode mode);

}  // namespace gpurota::daemon
