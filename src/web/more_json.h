// GPU hours and turns as JSON for the page. Pure. What it tells at which level: page_json.h.
#pragma once

#include "proto/methods.h"
#include "web/page_json.h"

#include <string>

namespace gpurota::web {

// Of /api/hours: what each GPU that the machine has was held, used and idle; at kNames also each
// user.
std::string hours_json(const proto::Report::Reply& by_gpu, const proto::Report::Reply& by_user,
                       const std::vector<proto::Gpu>& gpus, PageLevel level);

// Of /api/turns: the GPUs that swap leases are on, and what moving has cost; at kNames also who had
// the turn when.
std::string turns_json(const Snapshot& snapshot, WallTime now, PageLevel level);

}  // namespace gpurota::web
