// Why a request has its place in the queue, and how much its user has used, where the site orders
// the queue by use (docs/design/fair-share.md). Pure.
#pragma once

#include "proto/methods.h"

#include <string>

#include <sys/types.h>

namespace gpurota::cli {

// "behind R9 of alice, who has used less"; empty: the queue is in order of arrival, or no later
// request has passed this one.
std::string place_text(const proto::Request& request);
// The same with the use of both: "behind R9 of alice, who has used less GPU time: alice 3.0 h, you
// 41 h; …".
std::string place_in_full(const proto::Request& request, uid_t reader);
// "You have used 41 h of GPU time, …": one line; empty: the queue is in order of arrival.
std::string share_line(const proto::GetLimits::Reply& reply);

}  // namespace gpurota::cli
