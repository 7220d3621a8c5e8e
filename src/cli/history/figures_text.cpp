#include "cli/history/figures_text.h"

#include "cli/history/figure_sums.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

std::string name_of(const proto::GpuHistory& gpu) { return gpu.label.value_or(gpu.gpu_uuid.value); }

std::string gpus_text(const proto::History::Reply& reply, const Layout& style) {
  Table table({{"GPU", false, 8},
               {"LOAD", true},
               {"MAX", true},
               {"MEMORY", true},
               {"MAX", true},
               {"POWER", true},
               {"MAX", true},
               {"HOTTEST", true},
               {"LIMITED BY", false, 6},
               {"ERRORS", false}});
  for (const proto::GpuHistory& gpu : reply.gpus) {
    const GpuSums sums = sums_of(gpu);
    table.add({{name_of(gpu)},
               {percent_text(sums.load, sums.load.mean())},
               {percent_text(sums.load, sums.load.most())},
               {size_text(sums.memory, sums.memory.mean())},
               {size_text(sums.memory, sums.memory.most())},
               {watts_text(sums.power, sums.power.mean())},
               {watts_text(sums.power, sums.power.most())},
               {heat_text(sums.heat, sums.heat.most(), style.ascii)},
               {sums.limits, sums.limits == "-" ? Colour::kNone : Colour::kYellow},
               {sums.errors}});
  }
  return table.render(style);
}

std::string leases_text(const proto::History::Reply& reply, const Layout& style) {
  Table table({{"LEASE", false},
               {"MEMORY", true},
               {"MAX", true},
               {"LOAD", true},
               {"MAX", true},
               {"EVICTIONS", true},
               {"WAITED", true}});
  for (const proto::LeaseHistory& lease : reply.leases) {
    const LeaseSums sums = sums_of(lease);
    table.add({{to_string(lease.lease_id)},
               {size_text(sums.memory, sums.memory.mean())},
               {size_text(sums.memory, sums.memory.most())},
               {percent_text(sums.load, sums.load.mean())},
               {percent_text(sums.load, sums.load.most())},
               {std::to_string(sums.evictions)},
               {waited_text(sums.waited_ms)}});
  }
  return table.render(style);
}

// For a step: a dash if unknown; the unit is in the title.
template <class Number>
std::string number_text(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "-";
}
std::string used_text(const std::optional<Bytes>& bytes) {
  if (!bytes) return "-";
  return fmt::format("{:.2f}", static_cast<double>(bytes->count()) / (1U << 30U));
}
std::string seconds_of(const std::optional<std::int64_t>& milliseconds) {
  return milliseconds ? fmt::format("{:.1f}", static_cast<double>(*milliseconds) / 1000) : "-";
}

std::string watts_of(const std::optional<int>& milliwatts) {
  return milliwatts ? fmt::format("{:.0f}", static_cast<double>(*milliwatts) / 1000) : "-";
}

std::string gpu_steps(const proto::History::Reply& reply, const Layout& style) {
  Table table({{"TIME"},
               {"GPU", false, 8},
               {"LOAD %", true},
               {"USED GiB", true},
               {"MAX", true},
               {"WATT", true},
               {style.ascii ? "C" : "°C", true},
               {"LIMITED BY", false, 6},
               {"TURN"},
               {"XID", true}});
  for (const proto::GpuHistory& gpu : reply.gpus) {
    for (const proto::GpuPoint& point : gpu.points) {
      const bool limited = point.clock_limits && !point.clock_limits->empty();
      table.add({{full_time(point.time)},
                 {name_of(gpu)},
                 {number_text(point.utilisation_percent)},
                 {used_text(point.used_bytes)},
                 {used_text(point.max_used_bytes)},
                 {watts_of(point.power_mw)},
                 {number_text(point.temperature_celsius)},
                 {limited ? fmt::format("{}", fmt::join(*point.clock_limits, ",")) : "-",
                  limited ? Colour::kYellow : Colour::kNone},
                 {point.turn ? to_string(*point.turn) : "-"},
                 {number_text(point.xid_errors)}});
    }
  }
  return table.render(style);
}

std::string lease_steps(const proto::History::Reply& reply, const Layout& style) {
  Table table({{"TIME"},
               {"LEASE"},
               {"USED GiB", true},
               {"MAX", true},
               {"LOAD %", true},
               {"MAX", true},
               {"EVICTIONS", true},
               {"WAITED s", true}});
  for (const proto::LeaseHistory& lease : reply.leases) {
    for (const proto::LeasePoint& point : lease.points) {
      table.add({{full_time(point.time)},
                 {to_string(lease.lease_id)},
                 {used_text(point.used_bytes)},
                 {used_text(point.max_used_bytes)},
                 {number_text(point.sm_percent)},
                 {number_text(point.max_sm_percent)},
                 {number_text(point.evictions)},
                 {seconds_of(point.waited_ms)}});
    }
  }
  return table.render(style);
}

}  // namespace

std::string figures_text(const proto::History::Reply& reply, const Layout& style) {
  if (!has_points(reply)) return no_points_line(reply) + "\n";
  return span_line(reply) + "\n\n" +
         (reply.leases.empty() ? gpus_text(reply, style) : leases_text(reply, style));
}

std::string steps_text(const proto::History::Reply& reply, const Layout& style) {
  if (!has_points(reply)) return no_points_line(reply) + "\n";
  return reply.leases.empty() ? gpu_steps(reply, style) : lease_steps(reply, style);
}

}  // namespace gpurota::cli
