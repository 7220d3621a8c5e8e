#include "cli/text/figures_text.h"

#include "cli/args/since.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

namespace gpurota::cli {
namespace {

constexpr std::size_t kGraph = 40;  // columns

// The average of what is known, each point as long as it was sampled, and the highest.
class Sum {
 public:
  void add(std::optional<std::int64_t> value, std::optional<std::int64_t> most,
           std::int64_t seconds) {
    if (!value) return;
    const std::int64_t weight = std::max<std::int64_t>(seconds, 1);
    total_ += static_cast<double>(*value) * static_cast<double>(weight);
    weights_ += static_cast<double>(weight);
    most_ = std::max(most_, most.value_or(*value));
  }
  bool empty() const { return weights_ <= 0; }
  double mean() const { return empty() ? 0 : total_ / weights_; }
  double most() const { return static_cast<double>(most_); }

 private:
  double total_ = 0, weights_ = 0;
  std::int64_t most_ = 0;
};

std::optional<std::int64_t> number(std::optional<int> value) { return value; }
std::optional<std::int64_t> number(std::optional<Bytes> value) {
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(value->count());
}

Cell percent(const Sum& sum, double value) {
  return {sum.empty() ? "-" : fmt::format("{:.0f} %", value)};
}
Cell watts(const Sum& sum, double milliwatts) {
  return {sum.empty() ? "-" : fmt::format("{:.0f} W", milliwatts / 1000)};
}
Cell degrees(const Sum& sum, double value) {
  return {sum.empty() ? "-" : fmt::format("{:.0f} °C", value)};
}
Cell size(const Sum& sum, double bytes) {
  return {sum.empty() ? "-" : fmt::format("{:.2f} GiB", bytes / (1U << 30U))};
}

// Points put into the columns of a graph, by their time.
template <class Points, class Value>
std::string graph(const Points& points, const proto::History::Reply& reply, const Value& value) {
  const auto span = std::max<WallTime::duration>(reply.until - reply.since, WallTime::duration(1));
  std::vector<std::optional<int>> columns(kGraph);
  for (const auto& point : points) {
    const std::optional<int> percentage = value(point);
    const auto at = (point.time - reply.since) * static_cast<int>(kGraph) / span;
    if (!percentage || at < 0 || at >= static_cast<int>(kGraph)) continue;
    std::optional<int>& column = columns[static_cast<std::size_t>(at)];
    column = std::max(column.value_or(0), *percentage);
  }
  return graph_text(columns);
}

std::string limits_text(const proto::GpuHistory& gpu) {
  std::set<std::string> limits;
  for (const proto::GpuPoint& point : gpu.points) {
    if (point.clock_limits) limits.insert(point.clock_limits->begin(), point.clock_limits->end());
  }
  std::string text;
  for (const std::string& each : limits) text += (text.empty() ? "" : ",") + each;
  return text.empty() ? "-" : text;
}

std::string errors_text(const proto::GpuHistory& gpu) {
  std::uint64_t xid = 0, ecc = 0;
  bool known = false;
  for (const proto::GpuPoint& point : gpu.points) {
    known |= point.xid_errors || point.ecc_uncorrected;
    xid += point.xid_errors.value_or(0);
    ecc = std::max(ecc, point.ecc_uncorrected.value_or(0));
  }
  if (!known) return "-";
  return xid + ecc == 0 ? "0" : fmt::format("{} Xid, {} ECC", xid, ecc);
}

std::string gpus_text(const proto::History::Reply& reply, const Look& look, bool graphs) {
  Table table({{"GPU", false, 8},
               {"LOAD", true},
               {"MAX", true},
               {"MEMORY", true},
               {"MAX", true},
               {"POWER", true},
               {"MAX", true},
               {"HOTTEST", true},
               {"LIMITED BY", false, 6},
               {"ERRORS", false},
               {graphs ? "LOAD OVER TIME" : " "}});
  for (const proto::GpuHistory& gpu : reply.gpus) {
    Sum load, memory, power, heat;
    for (const proto::GpuPoint& each : gpu.points) {
      load.add(number(each.utilisation_percent), number(each.max_utilisation_percent),
               each.seconds);
      memory.add(number(each.used_bytes), number(each.max_used_bytes), each.seconds);
      power.add(each.power_mw, each.max_power_mw, each.seconds);
      heat.add(number(each.temperature_celsius), number(each.max_temperature_celsius),
               each.seconds);
    }
    const auto load_of = [](const proto::GpuPoint& point) { return point.utilisation_percent; };
    table.add({{gpu.label.value_or(gpu.gpu_uuid.value)},
               percent(load, load.mean()),
               percent(load, load.most()),
               size(memory, memory.mean()),
               size(memory, memory.most()),
               watts(power, power.mean()),
               watts(power, power.most()),
               degrees(heat, heat.most()),
               {limits_text(gpu), limits_text(gpu) == "-" ? Colour::kNone : Colour::kYellow},
               {errors_text(gpu)},
               {graphs ? graph(gpu.points, reply, load_of) : "", Colour::kGreen}});
  }
  return table.render(look);
}

std::string leases_text(const proto::History::Reply& reply, const Look& look, bool graphs) {
  Table table({{"LEASE", false},
               {"MEMORY", true},
               {"MAX", true},
               {"LOAD", true},
               {"MAX", true},
               {"EVICTIONS", true},
               {"WAITED", true},
               {graphs ? "LOAD OVER TIME" : " "}});
  for (const proto::LeaseHistory& lease : reply.leases) {
    Sum memory, load;
    std::int64_t waited_ms = 0;
    std::uint64_t evictions = 0;
    for (const proto::LeasePoint& each : lease.points) {
      memory.add(number(each.used_bytes), number(each.max_used_bytes), each.seconds);
      load.add(number(each.sm_percent), number(each.max_sm_percent), each.seconds);
      waited_ms += each.waited_ms.value_or(0);
      evictions += each.evictions.value_or(0);
    }
    const auto load_of = [](const proto::LeasePoint& point) { return point.sm_percent; };
    table.add({{to_string(lease.lease_id)},
               size(memory, memory.mean()),
               size(memory, memory.most()),
               percent(load, load.mean()),
               percent(load, load.most()),
               {std::to_string(evictions)},
               {fmt::format("{:.0f} s", static_cast<double>(waited_ms) / 1000)},
               {graphs ? graph(lease.points, reply, load_of) : "", Colour::kGreen}});
  }
  return table.render(look);
}

bool has_points(const proto::History::Reply& reply) {
  const auto any = [](const auto& each) { return !each.points.empty(); };
  return std::any_of(reply.gpus.begin(), reply.gpus.end(), any) ||
         std::any_of(reply.leases.begin(), reply.leases.end(), any);
}

std::string step_text(std::int64_t seconds) {
  if (seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  if (seconds % 60 == 0) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

}  // namespace

std::string graph_text(const std::vector<std::optional<int>>& percentages) {
  constexpr std::array<const char*, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (const std::optional<int>& each : percentages) {
    const int level = std::clamp(each.value_or(0), 0, 100) * 7 / 100;
    text += each ? kLevels[static_cast<std::size_t>(level)] : " ";
  }
  return text;
}

std::string figures_text(const proto::History::Reply& reply, const Look& look, bool graphs) {
  const std::string time = fmt::format("{} to {}", local_time(reply.since, "%Y-%m-%d %H:%M:%S"),
                                       local_time(reply.until, "%Y-%m-%d %H:%M:%S"));
  if (!has_points(reply)) return "nothing was sampled from " + time + "\n";
  return fmt::format("from {}, in steps of {}\n\n", time, step_text(reply.step_seconds)) +
         (reply.leases.empty() ? gpus_text(reply, look, graphs) : leases_text(reply, look, graphs));
}

}  // namespace gpurota::cli
