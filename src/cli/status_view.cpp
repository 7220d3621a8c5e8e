#include "cli/status_view.h"

#include "base/text.h"
#include "cli/status_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace gpurota::cli {
namespace {

std::vector<Column> columns() {
  return {{.title = "GPU", .right = true},
          {.title = "STATE", .gap = 1},
          {.title = "USER", .least = 4},  // names are firm; what is said beside them is not
          {.title = "LEASE"},
          {.title = "MEMORY", .right = true},
          {.title = "GiB", .gap = 1},
          {.title = "TURN"},
          {.title = "FOR", .right = true},
          {.title = "LOAD", .right = true},
          {.title = "MODEL", .least = 5},
          {.title = "WHAT", .least = 4}};
}

bool are_all_alike(const proto::Status::Reply& reply) {
  std::set<std::string> models;
  for (const proto::Gpu& gpu : reply.gpus) {
    if (!gpu.parent) models.insert(gpu.name);
  }
  return models.size() < 2;
}

// Where the terminal is too narrow for all of it: these go, in this order, before so much of WHAT is cut. The rest never goes.
void drop_what_has_no_room(Table& table, const proto::Status::Reply& reply, std::size_t width) {
  struct Step {
    StatusColumn column;
    std::size_t enough;  // of WHAT
  };
  std::vector<Step> steps = {{kModel, 40}, {kLoad, 40}, {kFor, 24}};
  if (!are_all_alike(reply)) steps = {{kLoad, 40}, {kModel, 28}, {kFor, 24}};
  for (const Step& step : steps) {
    if (table.width_with(kWhat, step.enough) > width) table.drop(step.column);
  }
}

std::string queue_line(const proto::Status::Reply& reply) {
  const std::uint64_t waiting = reply.waiting.value_or(0);
  const std::size_t booked = reply.bookings ? reply.bookings->size() : 0;
  std::string text;
  if (waiting > 0) {
    text += fmt::format("{} wait{}: gpurota queue\n", waiting, waiting == 1 ? "s" : "");
  }
  if (booked > 0) {
    text += fmt::format("{} booking{}: gpurota calendar\n", booked, booked == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

std::string status_text(const proto::Status::Reply& reply, const Look& look, WallTime now) {
  Table table(columns());
  for (std::vector<Cell>& row : status_rows(reply, now)) table.add(std::move(row));
  if (table.empty()) return "no GPU ('gpurota doctor' says why)\n" + queue_line(reply);
  for (std::size_t column = 0; column < kStatusColumns; ++column) {
    if (!table.has_text(column)) table.drop(column);
  }
  if (look.width > 0) drop_what_has_no_room(table, reply, look.width);
  return table.render(look) + queue_line(reply);
}

std::string summary_text(const proto::Status::Reply& reply, const std::string& host,
                         const Look& look) {
  std::map<std::string, int> models;
  std::map<proto::GpuState, int> states;
  int all = 0;
  for (const proto::Gpu& gpu : reply.gpus) {
    if (gpu.state == proto::GpuState::kSplit) continue;  // its instances count
    ++all;
    ++models[short_name(gpu.name)];
    ++states[gpu.state];
  }
  std::vector<Column> heads = {{"HOST"}, {"GPUS", true}};
  std::vector<Cell> cells = {{host, Colour::kNone}, {std::to_string(all), Colour::kNone}};
  const auto add = [&](const std::string& title, std::uint64_t count, Colour colour) {
    std::string upper = title;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    heads.push_back({upper, true});
    cells.push_back({std::to_string(count), colour});
  };
  for (const auto state :
       {proto::GpuState::kAvailable, proto::GpuState::kInUse, proto::GpuState::kHeld,
        proto::GpuState::kUnreservedUse, proto::GpuState::kDraining, proto::GpuState::kError,
        proto::GpuState::kUnknown}) {
    const bool always = state == proto::GpuState::kAvailable || state == proto::GpuState::kInUse;
    const auto [title, colour, firm] = state_cell(state);
    if (always || states[state] > 0) add(title, static_cast<std::uint64_t>(states[state]), colour);
  }
  if (reply.waiting.value_or(0) > 0) add("waiting", *reply.waiting, Colour::kNone);
  std::string kinds;
  for (const auto& [name, count] : models) {
    kinds += fmt::format("{}{} x {}", kinds.empty() ? "" : ", ", count, display_text(name, 40));
  }
  heads.push_back({"MODELS", false, 10});
  cells.push_back({kinds, Colour::kNone});
  Table table(std::move(heads));
  table.add(std::move(cells));
  return table.render(look);
}

void apply_threshold(proto::Status::Reply& reply, Bytes threshold) {
  for (proto::Gpu& gpu : reply.gpus) {
    const bool judged =
        gpu.state == proto::GpuState::kAvailable || gpu.state == proto::GpuState::kHeld ||
        gpu.state == proto::GpuState::kInUse || gpu.state == proto::GpuState::kUnreservedUse;
    if (!judged) continue;
    const bool above = gpu.unreserved_bytes > threshold;
    gpu.state = above                       ? proto::GpuState::kUnreservedUse
                : !only_fillers(gpu, reply) ? proto::GpuState::kInUse
                : gpu.held_for              ? proto::GpuState::kHeld
                                            : proto::GpuState::kAvailable;
    if (!above) {
      std::erase_if(reply.findings, [&](const proto::Finding& finding) {
        return finding.kind == proto::FindingKind::kUnreservedUse && finding.gpu_uuid == gpu.uuid;
      });
    } else if (!gpu.detail) {
      // What the site does not call so has no finding that says whose it is.
      gpu.detail = to_string(gpu.unreserved_bytes) + " without a lease: see gpurota ps";
    }
  }
}

}  // namespace gpurota::cli
