// A short text about which lease has the turn on a GPU. Pure.
#pragma once

#include "proto/methods.h"

#include <string>

namespace gpurota::cli::topview {

// "turn: L4 of carol, 3.2 s of 18.6 s left; next: L3 of bob, in 3.2 s; then L5 of dave". Empty:
// nobody there wants a turn.
std::string turns_line(const proto::TurnGpu& gpu, WallTime now);
// Of one lease: "now 3.2 s", "next 3.2 s", "2nd 21.8 s"; what is not known is left out. Empty: it
// is not there.
std::string turn_of(const proto::TurnGpu& gpu, LeaseId lease, WallTime now);

}  // namespace gpurota::cli::topview
