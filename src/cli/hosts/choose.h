// On which of several machines a program would start first. Pure: from what `gpurota status` shows
// of each.
#pragma once

#include "cli/args/args.h"
#include "cli/args/of_host.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// How many of its GPUs could be had now, and how many there are that fit at all: of the kind and
// the size that is asked for.
struct Room {
  int now = 0, ever = 0;
};
Room room_for(const LeaseWishes& wishes, const proto::Status::Reply& status);

// The first that has room now; else, of those that fit, the one where the fewest wait, the first of
// them. Nothing: none fits.
std::optional<std::string> choose_host(const LeaseWishes& wishes,
                                       const std::vector<OfHost<proto::Status>>& hosts);

}  // namespace gpurota::cli
