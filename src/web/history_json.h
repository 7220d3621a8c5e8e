// The daemon's History as JSON for the charts of the page: one list of numbers for each figure of
// each GPU, all of the same length, null where nothing is known. Pure. docs/operate/web-page.md
// lists the fields.
#pragma once

#include "proto/methods.h"

#include <string>

namespace gpurota::web {

std::string history_json(const proto::History::Reply& history);

}  // namespace gpurota::web
