// Chooses the machine on which a program would start first, from `gpurota status` of each. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/of_host.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// `now`: how many GPUs would fit now. `ever`: how many GPUs have the wanted kind and size, even if
// others use them now.
struct Room {
  int now = 0, ever = 0;
};
Room room_for(const LeaseWishes& wishes, const proto::Status::Reply& status);

// The first host with room now; else, among those that fit, the first with the fewest waiting
// requests. Nothing: none fits.
std::optional<std::string> choose_host(const LeaseWishes& wishes,
                                       const std::vector<OfHost<proto::Status>>& hosts);

}  // namespace gpurota::cli
