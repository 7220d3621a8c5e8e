#include "cli/filler_view.h"

#include "base/text.h"
#include "cli/time_text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

Colour colour_of(const std::string& state) {
  if (state == "on") return Colour::kGreen;
  if (state == "failing") return Colour::kRed;
  return state == "paused" || state == "evicted" ? Colour::kYellow : Colour::kNone;
}

}  // namespace

std::string place_text(const proto::FillerPlace& place, WallTime now) {
  if (place.state == "on") return "on";
  if (place.state == "leaving") return "leaving: " + display_text(place.why, 60);
  if (place.state == "evicted") {
    const bool soon = place.start_at && *place.start_at > now;
    return soon ? "evicted, until " + clock_text(*place.start_at, now)
                : "evicted: " + display_text(place.why, 60);
  }
  if (place.start_at) {
    return *place.start_at <= now ? "idle" : "idle, until " + clock_text(*place.start_at, now);
  }
  const bool known = !place.why.empty() && place.why != "nobody";
  return display_text(place.state, 20) + (known ? ": " + display_text(place.why, 60) : "");
}

std::string fillers_text(const std::vector<proto::Filler>& fillers, const Look& look,
                         WallTime now) {
  if (fillers.empty()) return "no fillers\n";
  Table table(
      {{"NAME"}, {"USER"}, {"STATE"}, {"GPU", true}, {"THERE"}, {"LEASE"}, {"COMMAND", false, 20}});
  for (const proto::Filler& filler : fillers) {
    // How it ended elsewhere or before is no news of one that is on.
    const bool tell = filler.detail && filler.state != "on";
    const std::string state =
        tell ? filler.state + ": " + display_text(*filler.detail, 100) : filler.state;
    bool first = true;
    const auto add = [&](const std::string& gpu, const std::string& there,
                         const std::string& lease) {
      table.add({{first ? filler.name : ""},
                 {first ? filler.user : ""},
                 {first ? state : "", colour_of(filler.state)},
                 {gpu},
                 {there},
                 {lease},
                 {first ? display_command(filler.command, 200) : ""}});
      first = false;
    };
    for (const proto::FillerPlace& place : filler.places) {
      add(std::to_string(place.gpu), place_text(place, now),
          place.lease_id ? to_string(*place.lease_id) : "-");
    }
    if (first) add("-", "-", "-");
  }
  return table.render(look);
}

}  // namespace gpurota::cli
