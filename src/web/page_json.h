// What the web page is told of the daemon's answers, as JSON. Pure. Fields are taken one by one: what the protocol gains is not public before
// somebody adds it here. No note, command, pid, name of a lease or model is told at any level. docs/operate/web-page.md lists the fields.
#pragma once

#include "proto/methods.h"
#include "web/metrics.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::web {

// What everybody who can connect may see. kTotals: GPUs and sums; kNames: also each lease and request, and whose it is.
enum class PageLevel { kNone, kTotals, kNames };
std::optional<PageLevel> parse_page_level(std::string_view word);
const char* to_string(PageLevel level);

// Of /api/now. Without a snapshot, because the daemon does not answer, only that. `sign_in`: how people do (signed_in.h).
std::string now_json(const std::optional<Snapshot>& snapshot, WallTime now, PageLevel level,
                     std::string_view sign_in = "none");

// Of /api/events, the newest first. At kTotals only what is about a GPU or the daemon and on nobody's account, without the sentence.
std::string events_json(const proto::Events::Reply& events, PageLevel level);

}  // namespace gpurota::web
