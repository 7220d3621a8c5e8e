#include "cli/status/status_view.h"

#include "base/text.h"
#include "cli/status/status_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace gpurota::cli {
namespace {

// useradd(8) makes account names of at most 32 characters; a directory may have longer ones.
constexpr std::size_t kWidestName = 44;

// The text with the account's name cut, so that other columns have room. The name of a person who
// shares the account stays whole; the table may cut it.
std::string narrow_user(const std::string& text) {
  const std::size_t end = std::min(text.find(" ("), text.size());
  const std::string name = display_text(text.substr(0, end));
  if (display_width(name) <= kWidestName) return text;
  return fit(name, kWidestName) + text.substr(end);
}

std::vector<Column> columns() {
  std::vector<Column> all;
  for (std::size_t i = 0; i < kStatusColumns; ++i)
    all.push_back(column_of(static_cast<StatusColumn>(i)));
  return all;
}

bool are_all_alike(const Hosts& hosts) {
  std::set<std::string> models;
  for (const auto& each : hosts) {
    for (const proto::Gpu& gpu : each.reply->gpus) {
      if (!gpu.parent) models.insert(gpu.name);
    }
  }
  return models.size() < 2;
}

// On a narrow terminal, drops columns in this order so that WHAT keeps `enough` columns of text.
// Other columns are never dropped.
void drop_what_has_no_room(Table& table, const Hosts& hosts, std::size_t width) {
  struct Step {
    StatusColumn column;
    std::size_t enough;  // width of WHAT
  };
  std::vector<Step> steps = {{kModel, 40}, {kLoad, 40}, {kFor, 24}};
  if (!are_all_alike(hosts)) steps = {{kLoad, 40}, {kModel, 28}, {kFor, 24}};
  for (const Step& step : steps) {
    if (table.width_with(kWhat, step.enough) > width) table.drop(step.column);
  }
}

// Every row is complete, because a program may read only one of them. No cell is empty, so that
// fields can be counted.
Cell chosen_cell(StatusColumn column, const std::vector<Cell>& row, const std::vector<Cell>& gpu,
                 const std::string& host) {
  const bool of_gpu =
      column == kGpu || column == kUuid || column == kFree || column == kLoad || column == kModel;
  Cell cell = of_gpu ? gpu[column] : row[column];
  if (column == kHost) cell.text = host;
  constexpr std::string_view kOf = "/ ";
  if (column == kSize && cell.text.starts_with(kOf)) cell.text.erase(0, kOf.size());
  if (cell.text.find_first_not_of(' ') == std::string::npos) cell.text = "-";
  return cell;
}

std::vector<std::vector<Cell>> chosen_rows(const Hosts& hosts,
                                           const std::vector<StatusColumn>& columns, WallTime now) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& each : hosts) {
    std::vector<Cell> gpu;  // the row with the values of the whole GPU
    for (const std::vector<Cell>& row : status_rows(*each.reply, now)) {
      if (!row[kGpu].text.empty()) gpu = row;
      std::vector<Cell>& cells = rows.emplace_back();
      for (const StatusColumn column : columns) {
        cells.push_back(chosen_cell(column, row, gpu, each.host));
      }
    }
  }
  return rows;
}

// For programs. A cell may contain spaces. display_text() replaces tabs in a cell, so a tab in a
// line always separates two cells.
std::string tab_separated(const std::vector<std::vector<Cell>>& rows) {
  constexpr std::size_t kLongest = 4096;
  std::string text;
  for (const std::vector<Cell>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += (i == 0 ? "" : "\t") + display_text(row[i].text, kLongest);
    }
    text += '\n';
  }
  return text;
}

std::string queue_line(const Hosts& hosts) {
  std::uint64_t waiting = 0;
  std::size_t booked = 0;
  for (const auto& each : hosts) {
    waiting += each.reply->waiting.value_or(0);
    booked += each.reply->bookings ? each.reply->bookings->size() : 0;
  }
  const bool is_named = !hosts.empty() && !hosts.front().host.empty();
  std::string text;
  if (waiting > 0) {
    text += fmt::format("{} wait{}: gpurota queue{}\n", waiting, waiting == 1 ? "s" : "",
                        is_named ? " --host …" : "");
  }
  if (booked > 0) {
    text += fmt::format("{} booking{}: gpurota calendar{}\n", booked, booked == 1 ? "" : "s",
                        is_named ? " there" : "");
  }
  return text;
}

// The number of GPUs of one machine by state and by model.
struct Count {
  std::string host;
  int all = 0;
  std::map<std::string, int> models;
  std::map<proto::GpuState, int> states;
  std::uint64_t waiting = 0;
};

Count count_of(const OfHost<proto::Status>& host) {
  Count count;
  count.host = host.host;
  for (const proto::Gpu& gpu : host.reply->gpus) {
    if (gpu.state == proto::GpuState::kSplit) continue;  // its instances count
    ++count.all;
    ++count.models[short_name(gpu.name)];
    ++count.states[gpu.state];
  }
  count.waiting = host.reply->waiting.value_or(0);
  return count;
}

std::string models_text(const Count& count) {
  std::string kinds;
  for (const auto& [name, number] : count.models) {
    kinds += fmt::format("{}{} x {}", kinds.empty() ? "" : ", ", number, display_text(name, 40));
  }
  return kinds;
}

}  // namespace

std::string status_picture(const proto::Status::Reply& reply, const std::string& host,
                           const StatusForm& form, const Layout& layout, WallTime now) {
  const bool is_named = form.summary || form.chosen;
  return hosts_picture(Hosts{{is_named ? host : "", &reply}}, form, layout, now);
}

std::string hosts_picture(const Hosts& hosts, const StatusForm& form, const Layout& layout,
                          WallTime now) {
  const bool nothing = std::all_of(hosts.begin(), hosts.end(), [](const auto& each) {
    return each.reply->gpus.empty() && each.reply->leases.empty();
  });
  if (nothing && !form.whose.everybody()) return has_text(form.whose) + " no GPU\n";
  if (form.summary) return hosts_summary_text(hosts, layout);
  return form.chosen ? chosen_text(hosts, *form.chosen, layout, now)
                     : hosts_status_text(hosts, layout, now);
}

std::string hosts_status_text(const Hosts& hosts, const Layout& layout, WallTime now) {
  Table table(columns());
  for (const auto& each : hosts) {
    for (std::vector<Cell>& row : status_rows(*each.reply, now)) {
      row[kHost].text = each.host;
      row[kUser].text = narrow_user(row[kUser].text);
      table.add(std::move(row));
    }
  }
  if (table.empty()) return "no GPU ('gpurota doctor' says why)\n" + queue_line(hosts);
  for (std::size_t column = 0; column < kStatusColumns; ++column) {
    if (column > kWhat || !table.has_text(column)) table.drop(column);
  }
  if (layout.width > 0) drop_what_has_no_room(table, hosts, layout.width);
  const std::string queued = queue_line(hosts);
  return table.render(layout) + (layout.ascii ? ascii_text(queued) : queued);
}

std::string chosen_text(const Hosts& hosts, const ChosenColumns& chosen, const Layout& layout,
                        WallTime now) {
  const std::vector<std::vector<Cell>> rows = chosen_rows(hosts, chosen.columns, now);
  if (!chosen.titles) return tab_separated(rows);
  std::vector<Column> titles;
  for (const StatusColumn column : chosen.columns) titles.push_back(chosen_column(column));
  Table table(std::move(titles));
  for (const std::vector<Cell>& row : rows) table.add(row);
  return table.render(layout);
}

std::string hosts_summary_text(const Hosts& hosts, const Layout& layout) {
  std::vector<Count> counts;
  for (const auto& each : hosts) counts.push_back(count_of(each));
  std::vector<Column> heads = {{"HOST"}, {"GPUS", true}};
  std::vector<std::vector<Cell>> rows;
  for (const Count& count : counts) {
    rows.push_back({{count.host, Colour::kNone}, {std::to_string(count.all), Colour::kNone}});
  }
  const auto add = [&](const std::string& title, Colour colour, bool always, auto number_of) {
    if (!always && std::all_of(counts.begin(), counts.end(),
                               [&](Count& count) { return number_of(count) == 0; })) {
      return;
    }
    std::string upper = title;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    heads.push_back({upper, true});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].push_back({std::to_string(number_of(counts[i])), colour});
    }
  };
  for (const auto state :
       {proto::GpuState::kAvailable, proto::GpuState::kInUse, proto::GpuState::kHeld,
        proto::GpuState::kUnreservedUse, proto::GpuState::kDraining, proto::GpuState::kError,
        proto::GpuState::kUnknown}) {
    const bool always = state == proto::GpuState::kAvailable || state == proto::GpuState::kInUse;
    const auto [title, colour, firm] = state_cell(state);
    add(title, colour, always, [state](Count& count) { return count.states[state]; });
  }
  add("waiting", Colour::kNone, false, [](Count& count) { return count.waiting; });
  heads.push_back({"MODELS", false, 10});
  Table table(std::move(heads));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].push_back({models_text(counts[i]), Colour::kNone});
    table.add(std::move(rows[i]));
  }
  return table.render(layout);
}

void apply_threshold(proto::Status::Reply& reply, Bytes threshold) {
  for (proto::Gpu& gpu : reply.gpus) {
    const bool judged =
        gpu.state == proto::GpuState::kAvailable || gpu.state == proto::GpuState::kHeld ||
        gpu.state == proto::GpuState::kInUse || gpu.state == proto::GpuState::kUnreservedUse;
    if (!judged) continue;
    const bool above = gpu.unreserved_bytes > threshold;
    gpu.state = above                         ? proto::GpuState::kUnreservedUse
                : !has_whole_room(gpu, reply) ? proto::GpuState::kInUse
                : gpu.held_for                ? proto::GpuState::kHeld
                                              : proto::GpuState::kAvailable;
    if (!above) {
      std::erase_if(reply.findings, [&](const proto::Finding& finding) {
        return finding.kind == proto::FindingKind::kUnreservedUse && finding.gpu_uuid == gpu.uuid;
      });
    } else if (!gpu.detail) {
      // Use that the site does not report has no finding, so its user is unknown.
      gpu.detail = to_string(gpu.unreserved_bytes) + " without a lease: see gpurota ps";
    }
  }
}

}  // namespace gpurota::cli
