// A short text about which lease has the turn on a GPU. Pure.
#pragma once

#include "proto/methods.h"

#include <string>

namespace gpurota::cli::topview {

// "turn: L4 of carol, 3.2 s of 18.6 s left; next: L3 of bob, in 3.2 s; then L5 of dave". Empty: no
// lease there wants a turn.
std::string turns_line(const proto::TurnGpu& gpu, WallTime now);
// For one lease: "now 3.2 s", "next 3.2 s", "2nd 21.8 s"; unknown parts are left out. Empty: the
// lease is not there.
std::string turn_of(const proto::TurnGpu& gpu, LeaseId lease, WallTime now);

}  // namespace gpurota::cli::topview
