// The text of `events` and `report`. Pure.
#pragma once

#include "cli/args/of_host.h"
#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// One line with its newline.
std::string event_text(const proto::Event& event, const Layout& layout);

// Draws bars if stdout is a terminal.
std::string report_text(const proto::Report::Reply& reply, const Layout& layout);
// For several machines, at least one: in their order, with their names in the first column.
std::string hosts_report_text(const std::vector<OfHost<proto::Report>>& hosts,
                              const Layout& layout);
// Names GPUs that exist by index and model: "0 NVIDIA H200".
void name_gpus(proto::Report::Reply& reply, const std::vector<proto::Gpu>& gpus);
// RFC 4180. Text is made safe, and never begins like a spreadsheet's formula.
std::string report_csv(const proto::Report::Reply& reply);
std::string hosts_report_csv(const std::vector<OfHost<proto::Report>>& hosts);

}  // namespace gpurota::cli
