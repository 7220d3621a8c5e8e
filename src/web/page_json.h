// Makes the JSON of the web page from the daemon's answers. Pure. Copies fields one by one, so a
// new field of the protocol is not public until somebody adds it here. Notes, commands, pids, names
// of leases and models are never included, at any level. docs/operate/web-page.md lists the fields.
#pragma once

#include "proto/methods.h"
#include "web/metrics.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::web {

// The view of everybody who can connect. kTotals: GPUs and sums; kNames: also each lease and
// request, with its owner; kSignedIn: nothing, because the view of kNames is only for users who
// have signed in.
enum class PageLevel { kNone, kTotals, kNames, kSignedIn };
std::optional<PageLevel> parse_page_level(std::string_view word);
const char* to_string(PageLevel level);
// For those who may see the page.
inline bool shows_names(PageLevel level) {
  return level == PageLevel::kNames || level == PageLevel::kSignedIn;
}

// The JSON of /api/now. Without a snapshot, which means that the daemon does not answer, has only
// that. `sign_in`: how people sign in (signed_in.h). `machines`: how many machines the page shows,
// including this one.
std::string now_json(const std::optional<Snapshot>& snapshot, WallTime now, PageLevel level,
                     std::string_view sign_in = "none", std::size_t machines = 1);

// The JSON of /api/events, newest first. At kTotals: only events about a GPU or the daemon that
// concern no user, and their messages are left out.
std::string events_json(const proto::Events::Reply& events, PageLevel level);

// The JSON of /api/hours: how long each of the machine's GPUs was held, used and idle; at kNames
// also each user.
std::string hours_json(const proto::Report::Reply& by_gpu, const proto::Report::Reply& by_user,
                       const std::vector<proto::Gpu>& gpus, PageLevel level);

// The JSON of /api/turns: the GPUs with swap leases, and the cost of moving memory; at kNames also
// which lease had the turn when.
std::string turns_json(const Snapshot& snapshot, WallTime now, PageLevel level);

}  // namespace gpurota::web
