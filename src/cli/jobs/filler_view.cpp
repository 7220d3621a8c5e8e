#include "cli/jobs/filler_view.h"

#include "base/text.h"
#include "client/reason_text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

Colour filler_colour(const std::string& state) {
  if (state == "on") return Colour::kGreen;
  if (state == "failing") return Colour::kRed;
  return state == "paused" || state == "evicted" ? Colour::kYellow : Colour::kNone;
}

}  // namespace

std::string place_text(const proto::FillerPlace& place, WallTime now) {
  if (place.state == "on") return "running";
  const std::string state = display_text(place.state, 20);
  if (!place.wait_reason) return state == "free" ? "idle" : state;
  const std::string why = client::reason_text(place, now);
  // The state comes first if the filler has not ended on this GPU yet.
  return state == "leaving" || state == "evicted" ? state + ": " + why : why;
}

std::string fillers_text(const std::vector<proto::Filler>& fillers, const Layout& layout,
                         WallTime now) {
  if (fillers.empty()) return "no fillers\n";
  Table table(
      {{"NAME"}, {"USER"}, {"STATE"}, {"GPU", true}, {"THERE"}, {"LEASE"}, {"COMMAND", false, 20}});
  for (const proto::Filler& filler : fillers) {
    // While a filler is running, `detail` is not shown: it is about an earlier end, or an end on
    // another GPU.
    const bool tell = filler.detail && filler.state != "on";
    const std::string word = filler.state == "on" ? "running" : display_text(filler.state, 20);
    const std::string state = tell ? word + ": " + display_text(*filler.detail, 100) : word;
    bool first = true;
    const auto add = [&](const std::string& gpu, const std::string& there,
                         const std::string& lease) {
      table.add({{first ? filler.name : ""},
                 {first ? filler.user : ""},
                 {first ? state : "", filler_colour(filler.state)},
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
  return table.render(layout);
}

}  // namespace gpurota::cli
