#include "cli/history/figure_sums.h"

#include "cli/args/since.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace gpurota::cli {
namespace {

constexpr auto kEachSecond = std::chrono::minutes(15);  // steps of 1 s are kept for this long

std::optional<std::int64_t> wide(std::optional<int> value) { return value; }
std::optional<std::int64_t> wide(std::optional<Bytes> value) {
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(value->count());
}

std::string limits_of(const proto::GpuHistory& gpu) {
  std::set<std::string> limits;
  for (const proto::GpuPoint& point : gpu.points) {
    if (point.clock_limits) limits.insert(point.clock_limits->begin(), point.clock_limits->end());
  }
  return limits.empty() ? "-" : fmt::format("{}", fmt::join(limits, ","));
}

std::string errors_of(const proto::GpuHistory& gpu) {
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

std::string step_text(std::int64_t seconds) {
  if (seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  if (seconds % 60 == 0) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

std::string from_to(const proto::History::Reply& reply) {
  return fmt::format("from {} to {}", full_time(reply.since), full_time(reply.until));
}

}  // namespace

void Sum::add(std::optional<std::int64_t> value, std::optional<std::int64_t> most,
              std::int64_t seconds) {
  if (!value) return;
  const std::int64_t weight = std::max<std::int64_t>(seconds, 1);
  total_ += static_cast<double>(*value) * static_cast<double>(weight);
  weights_ += static_cast<double>(weight);
  most_ = std::max(most_, most.value_or(*value));
}

void Sum::add(std::optional<Bytes> value, std::optional<Bytes> most, std::int64_t seconds) {
  add(wide(value), wide(most), seconds);
}

GpuSums sums_of(const proto::GpuHistory& gpu) {
  GpuSums sums;
  for (const proto::GpuPoint& each : gpu.points) {
    sums.load.add(wide(each.utilisation_percent), wide(each.max_utilisation_percent), each.seconds);
    sums.memory.add(each.used_bytes, each.max_used_bytes, each.seconds);
    sums.power.add(wide(each.power_mw), wide(each.max_power_mw), each.seconds);
    sums.heat.add(wide(each.temperature_celsius), wide(each.max_temperature_celsius), each.seconds);
  }
  sums.limits = limits_of(gpu);
  sums.errors = errors_of(gpu);
  return sums;
}

LeaseSums sums_of(const proto::LeaseHistory& lease) {
  LeaseSums sums;
  for (const proto::LeasePoint& each : lease.points) {
    sums.memory.add(each.used_bytes, each.max_used_bytes, each.seconds);
    sums.load.add(wide(each.sm_percent), wide(each.max_sm_percent), each.seconds);
    sums.waited_ms += each.waited_ms.value_or(0);
    sums.evictions += each.evictions.value_or(0);
  }
  return sums;
}

std::string percent_text(const Sum& sum, double value) {
  return sum.empty() ? "-" : fmt::format("{:.0f} %", value);
}
std::string watts_text(const Sum& sum, double milliwatts) {
  return sum.empty() ? "-" : fmt::format("{:.0f} W", milliwatts / 1000);
}
std::string size_text(const Sum& sum, double bytes) {
  return sum.empty() ? "-" : fmt::format("{:.2f} GiB", bytes / (1U << 30U));
}
std::string heat_text(const Sum& sum, double celsius, bool ascii) {
  return sum.empty() ? "-" : fmt::format("{:.0f} {}", celsius, ascii ? "C" : "°C");
}
std::string waited_text(std::int64_t milliseconds) {
  return fmt::format("{:.0f} s", static_cast<double>(milliseconds) / 1000);
}

std::string full_time(WallTime time) { return local_time(time, "%Y-%m-%d %H:%M:%S"); }

std::string span_line(const proto::History::Reply& reply) {
  return fmt::format("{}, in steps of {}", from_to(reply), step_text(reply.step_seconds));
}

bool has_points(const proto::History::Reply& reply) {
  const auto any = [](const auto& each) { return !each.points.empty(); };
  return std::any_of(reply.gpus.begin(), reply.gpus.end(), any) ||
         std::any_of(reply.leases.begin(), reply.leases.end(), any);
}

std::string no_points_line(const proto::History::Reply& reply) {
  std::string line = "nothing was sampled " + from_to(reply);
  // With longer steps, the newest figures are not in the reply until their step is over.
  if (reply.until - reply.since > kEachSecond) {
    line += fmt::format(" in a whole step of {}, see --since 15m", step_text(reply.step_seconds));
  }
  return line;
}

}  // namespace gpurota::cli
