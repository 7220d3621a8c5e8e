// Why a filler is not on a GPU, or leaves it, as its user reads it. Pure.
#pragma once

#include "core/reason.h"
#include "filler/turn_taking.h"

#include <optional>
#include <string_view>

namespace gpurota::filler {

// `gpu`: what people call it. `start_at`: when a filler may start there, or go on, if nobody comes.
// Nothing: it is there, or it may start.
std::optional<Reason> place_reason(const TurnTaking& turns, std::string_view gpu,
                                   std::optional<WallTime> start_at);
// Of a GPU where another filler is.
Reason other_filler_reason(std::string_view gpu);
// Of any GPU.
Reason paused_reason();

}  // namespace gpurota::filler
