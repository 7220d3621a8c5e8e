// The output of `gpurota filler list`, as text. Pure.
#pragma once

#include "cli/text/table.h"
#include "core/time.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

std::string fillers_text(const std::vector<proto::Filler>& fillers, const Layout& layout,
                         WallTime now);
// "on", "leaving: wanted", "idle from 14:05 on", "busy: leased".
std::string place_text(const proto::FillerPlace& place, WallTime now);

}  // namespace gpurota::cli
