// What `events` and `report` show, as text. Pure.
#pragma once

#include "cli/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// One line with its newline.
std::string event_text(const proto::Event& event, const Look& look);

// With bars on a terminal.
std::string report_text(const proto::Report::Reply& reply, const Look& look);
// RFC 4180. Text is made safe, and never begins as a spreadsheet's formula does.
std::string report_csv(const proto::Report::Reply& reply);

}  // namespace gpurota::cli
