// The daemon's History as JSON for the page's charts: for each figure of each GPU a list of
// numbers, all of the same length, null where the value is unknown. Pure. docs/operate/web-page.md
// lists the fields.
#pragma once

#include "proto/methods.h"

#include <string>

namespace gpurota::web {

std::string history_json(const proto::History::Reply& history);

}  // namespace gpurota::web
