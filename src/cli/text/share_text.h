// Why a request is where it is in the queue, and what its user has used, where the site orders the
// queue by that (docs/design/fair-share.md). Pure.
#pragma once

#include "proto/methods.h"

#include <string>

#include <sys/types.h>

namespace gpurota::cli {

// "behind R9 of alice, who has used less"; empty: the order is that of coming, or nobody has passed
// it.
std::string place_text(const proto::Request& request);
// The same with what both have used: "behind R9 of alice, who has used less GPU time: alice 3.0 h,
// you 41 h; …".
std::string place_in_full(const proto::Request& request, uid_t reader);
// "You have used 41 h of GPU time, …": a line; empty: the order is that of coming.
std::string share_line(const proto::GetLimits::Reply& reply);

}  // namespace gpurota::cli
