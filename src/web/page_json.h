// Makes the JSON of the web page from the daemon's answers. Pure. Fields are taken one by one: a
// new field of the protocol is not public before somebody adds it here. No note, command, pid, name
// of a lease or model is told at any level. docs/operate/web-page.md lists the fields.
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
// request, and whose it is; kSignedIn: nothing, and the view of kNames is for users who have signed
// in.
enum class PageLevel { kNone, kTotals, kNames, kSignedIn };
std::optional<PageLevel> parse_page_level(std::string_view word);
const char* to_string(PageLevel level);
// To those who may see the page.
inline bool shows_names(PageLevel level) {
  return level == PageLevel::kNames || level == PageLevel::kSignedIn;
}

// Of /api/now. Without a snapshot, because the daemon does not answer, only that. `sign_in`: how
// people do (signed_in.h). `machines`: how many the page shows, this one among them.
std::string now_json(const std::optional<Snapshot>& snapshot, WallTime now, PageLevel level,
                     std::string_view sign_in = "none", std::size_t machines = 1);

// Of /api/events, the newest first. At kTotals only what is about a GPU or the daemon and on
// nobody's account, without the sentence.
std::string events_json(const proto::Events::Reply& events, PageLevel level);

// Of /api/hours: what each GPU that the machine has was held, used and idle; at kNames also each
// user.
std::string hours_json(const proto::Report::Reply& by_gpu, const proto::Report::Reply& by_user,
                       const std::vector<proto::Gpu>& gpus, PageLevel level);

// Of /api/turns: the GPUs that swap leases are on, and what moving has cost; at kNames also who had
// the turn when.
std::string turns_json(const Snapshot& snapshot, WallTime now, PageLevel level);

}  // namespace gpurota::web
