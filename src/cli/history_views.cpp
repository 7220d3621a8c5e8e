#include "cli/history_views.h"

#include "base/text.h"
#include "cli/since.h"
#include "cli/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpurota::cli {
namespace {

constexpr std::size_t kBar = 24;  // columns

Colour colour_of(proto::EventType type) {
  switch (type) {
    case proto::EventType::kFindingBegun:
    case proto::EventType::kGrantDenied:
    case proto::EventType::kCallDenied:
      return Colour::kYellow;
    case proto::EventType::kGpuError:
    case proto::EventType::kProcessStopped:
      return Colour::kRed;
    default:
      return Colour::kNone;
  }
}

double hours(std::uint64_t seconds) { return static_cast<double>(seconds) / 3600; }
std::string optional_hours(std::optional<std::uint64_t> seconds) {
  return seconds ? fmt::format("{:.2f}", hours(*seconds)) : "-";
}
double gib_hours(std::uint64_t mib_seconds) { return hours(mib_seconds) / 1024; }

std::string name_of(const proto::ReportRow& row) {
  if (!row.key) return "(others)";
  return row.key->empty() ? "(none)" : display_text(*row.key, 80);
}

std::string bar(std::uint64_t value, std::uint64_t most) {
  if (most == 0) return {};
  const double share = static_cast<double>(value) / static_cast<double>(most);
  const auto full = static_cast<std::size_t>(std::lround(share * kBar));
  std::string text;
  for (std::size_t i = 0; i < full; ++i) text += "█";
  return text;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string csv_field(const std::string& text) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != text.npos;
  std::string out = formula ? "\"'" : "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string event_text(const proto::Event& event, const Look& look) {
  std::string line = fmt::format(
      "{}  {:<16}  {:<10}  {}", local_time(event.time), to_string(event.type),
      event.user ? display_text(*event.user, 32) : "-", display_text(event.message, 400));
  if (event.count > 1) line += fmt::format(" ({} times)", event.count);
  if (event.pids && !event.pids->empty()) {
    std::string pids;
    for (const pid_t pid : *event.pids) pids += fmt::format(" {}", pid);
    line += fmt::format(" [pid{}]", pids);
  }
  if (event.detail) line += " | " + display_text(*event.detail, 400);
  return paint(line, colour_of(event.type), look) + "\n";
}

std::string report_text(const proto::Report::Reply& reply, const Look& look) {
  const std::string time = fmt::format("{} to {}", local_time(reply.since, "%Y-%m-%d %H:%M"),
                                       local_time(reply.until, "%Y-%m-%d %H:%M"));
  if (reply.rows.empty()) return "no GPU was used from " + time + "\n";
  proto::ReportRow total;
  std::uint64_t most = 0;
  for (const proto::ReportRow& row : reply.rows) {
    total.leases += row.leases;
    total.gpu_seconds += row.gpu_seconds;
    total.mib_seconds += row.mib_seconds;
    total.used_gpu_seconds = total.used_gpu_seconds.value_or(0) + row.used_gpu_seconds.value_or(0);
    total.idle_gpu_seconds = total.idle_gpu_seconds.value_or(0) + row.idle_gpu_seconds.value_or(0);
    most = std::max(most, row.gpu_seconds);
  }
  Table table({{upper(display_text(reply.by, 20)), false, 8},
               {"LEASES", true},
               {"GPU HOURS", true},
               {"SHARE", true},
               {"USED", true},
               {"IDLE", true},
               {"GIB HOURS", true},
               {look.width > 0 ? "" : " "}});
  const auto add = [&](const std::string& name, const proto::ReportRow& row, bool bars) {
    const double part = total.gpu_seconds == 0 ? 0
                                               : 100.0 * static_cast<double>(row.gpu_seconds) /
                                                     static_cast<double>(total.gpu_seconds);
    table.add({{name, Colour::kNone},
               {std::to_string(row.leases), Colour::kNone},
               {fmt::format("{:.2f}", hours(row.gpu_seconds)), Colour::kNone},
               {fmt::format("{:.0f} %", part), Colour::kNone},
               {optional_hours(row.used_gpu_seconds), Colour::kNone},
               {optional_hours(row.idle_gpu_seconds), Colour::kNone},
               {fmt::format("{:.2f}", gib_hours(row.mib_seconds)), Colour::kNone},
               {bars && look.width > 0 ? bar(row.gpu_seconds, most) : "", Colour::kGreen}});
  };
  for (const proto::ReportRow& row : reply.rows) add(name_of(row), row, true);
  add("total", total, false);
  return fmt::format("GPU use from {}\n\n", time) + table.render(look);
}

void name_gpus(proto::Report::Reply& reply, const std::vector<proto::Gpu>& gpus) {
  for (proto::ReportRow& row : reply.rows) {
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&row](const proto::Gpu& each) {
      return row.key == each.uuid.value;
    });
    if (gpu != gpus.end()) row.key = fmt::format("{} {}", label_of(*gpu), gpu->name);
  }
}

std::string report_csv(const proto::Report::Reply& reply) {
  std::string text =
      csv_field(display_text(reply.by, 20)) +
      ",\"leases\",\"gpu_hours\",\"gib_hours\",\"used_gpu_hours\",\"idle_gpu_hours\"\r\n";
  for (const proto::ReportRow& row : reply.rows) {
    text += fmt::format("{},{},{:.4f},{:.4f},{:.4f},{:.4f}\r\n", csv_field(name_of(row)),
                        row.leases, hours(row.gpu_seconds), gib_hours(row.mib_seconds),
                        hours(row.used_gpu_seconds.value_or(0)),
                        hours(row.idle_gpu_seconds.value_or(0)));
  }
  return text;
}

}  // namespace gpurota::cli
