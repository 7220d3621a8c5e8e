#include "cli/history/history_views.h"

#include "base/text.h"
#include "cli/args/since.h"
#include "cli/text/ps_doctor_text.h"

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

struct Total {
  proto::ReportRow row;
  std::size_t rows = 0;
  std::uint64_t most = 0;  // GPU time of the largest row
};

// Adds a value that an older gpurotad does not measure: `sum` stays unknown until a row has the
// value.
void add_known(std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> more) {
  if (more) sum = sum.value_or(0) + *more;
}
std::string csv_hours(std::optional<std::uint64_t> seconds) {
  return seconds ? fmt::format("{:.4f}", hours(*seconds)) : "";
}

Total sum_of(const std::vector<OfHost<proto::Report>>& hosts) {
  Total total;
  for (const auto& each : hosts) {
    for (const proto::ReportRow& row : each.reply->rows) {
      ++total.rows;
      total.row.leases += row.leases;
      total.row.gpu_seconds += row.gpu_seconds;
      total.row.mib_seconds += row.mib_seconds;
      add_known(total.row.used_gpu_seconds, row.used_gpu_seconds);
      add_known(total.row.idle_gpu_seconds, row.idle_gpu_seconds);
      total.most = std::max(total.most, row.gpu_seconds);
    }
  }
  return total;
}

}  // namespace

std::string event_text(const proto::Event& event, const Layout& layout) {
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
  if (layout.ascii) line = ascii_text(line);
  return paint(line, colour_of(event.type), layout) + "\n";
}

std::string report_text(const proto::Report::Reply& reply, const Layout& layout) {
  return hosts_report_text(std::vector<OfHost<proto::Report>>{{"", &reply}}, layout);
}

std::string hosts_report_text(const std::vector<OfHost<proto::Report>>& hosts,
                              const Layout& layout) {
  const proto::Report::Reply& one = *hosts.front().reply;
  const std::string time = fmt::format("{} to {}", local_time(one.since, "%Y-%m-%d %H:%M"),
                                       local_time(one.until, "%Y-%m-%d %H:%M"));
  const Total total = sum_of(hosts);
  if (total.rows == 0) return "no GPU was used from " + time + "\n";
  Table table({{"HOST"},
               {upper(display_text(one.by, 20)), false, 8},
               {"LEASES", true},
               {"GPU HOURS", true},
               {"SHARE", true},
               {"USED", true},
               {"IDLE", true},
               {"GIB HOURS", true},
               {layout.width > 0 ? "" : " "}});
  const auto add = [&](const std::string& host, const std::string& name,
                       const proto::ReportRow& row, bool bars) {
    const double part = total.row.gpu_seconds == 0 ? 0
                                                   : 100.0 * static_cast<double>(row.gpu_seconds) /
                                                         static_cast<double>(total.row.gpu_seconds);
    table.add({{host, Colour::kNone},
               {name, Colour::kNone},
               {std::to_string(row.leases), Colour::kNone},
               {fmt::format("{:.2f}", hours(row.gpu_seconds)), Colour::kNone},
               {fmt::format("{:.0f} %", part), Colour::kNone},
               {optional_hours(row.used_gpu_seconds), Colour::kNone},
               {optional_hours(row.idle_gpu_seconds), Colour::kNone},
               {fmt::format("{:.2f}", gib_hours(row.mib_seconds)), Colour::kNone},
               {bars && layout.width > 0 ? bar(row.gpu_seconds, total.most) : "", Colour::kGreen}});
  };
  for (const auto& each : hosts) {
    for (const proto::ReportRow& row : each.reply->rows) add(each.host, name_of(row), row, true);
  }
  add("", "total", total.row, false);
  if (!table.has_text(0)) table.drop(0);
  return fmt::format("GPU use from {}\n\n", time) + table.render(layout);
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
  return hosts_report_csv(std::vector<OfHost<proto::Report>>{{"", &reply}});
}

std::string hosts_report_csv(const std::vector<OfHost<proto::Report>>& hosts) {
  const bool is_named = hosts.size() > 1 || (!hosts.empty() && !hosts.front().host.empty());
  const std::string by = hosts.empty() ? "" : hosts.front().reply->by;
  std::string text =
      (is_named ? "\"host\"," : "") + csv_field(display_text(by, 20)) +
      ",\"leases\",\"gpu_hours\",\"gib_hours\",\"used_gpu_hours\",\"idle_gpu_hours\"\r\n";
  for (const auto& each : hosts) {
    for (const proto::ReportRow& row : each.reply->rows) {
      text += is_named ? csv_field(each.host) + "," : "";
      text += fmt::format("{},{},{:.4f},{:.4f},{},{}\r\n", csv_field(name_of(row)), row.leases,
                          hours(row.gpu_seconds), gib_hours(row.mib_seconds),
                          csv_hours(row.used_gpu_seconds), csv_hours(row.idle_gpu_seconds));
    }
  }
  return text;
}

}  // namespace gpurota::cli
