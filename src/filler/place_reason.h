// Why a filler is not on a GPU, or leaves it, as text for its user. Pure.
#pragma once

#include "core/reason.h"
#include "filler/turn_taking.h"

#include <optional>
#include <string_view>

namespace gpurota::filler {

// `gpu`: its name for people. `start_at`: when a filler may start there, or continue, if nobody
// needs the GPU. Nothing: the filler is there, or may start.
std::optional<Reason> place_reason(const TurnTaking& turns, std::string_view gpu,
                                   std::optional<WallTime> start_at);
// The reason on a GPU where another filler runs.
Reason other_filler_reason(std::string_view gpu);
// The reason on every GPU.
Reason paused_reason();

}  // namespace gpurota::filler
