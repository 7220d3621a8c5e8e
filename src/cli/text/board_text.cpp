#include "cli/text/board_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

namespace gpurota::cli {
namespace {

std::string of_limit(std::optional<std::int64_t> value, std::optional<std::int64_t> limit,
                     const char* unit) {
  if (!value) return "";
  return limit ? fmt::format("{}/{} {}", *value, *limit, unit) : fmt::format("{} {}", *value, unit);
}

std::optional<std::int64_t> watts(const auto& milliwatts) {
  if (!milliwatts) return std::nullopt;
  return (std::int64_t{*milliwatts} + 500) / 1000;
}

std::string count_text(std::uint64_t count, const char* what) {
  return count == 0 ? "" : fmt::format("{} {} error{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string power_text(const proto::Gpu& gpu) {
  return of_limit(watts(gpu.power_mw), watts(gpu.power_limit_mw), "W");
}

std::string heat_text(const proto::Gpu& gpu) {
  return of_limit(gpu.temperature_celsius, gpu.slowdown_celsius, "°C");
}

std::string clock_rate_text(const proto::Gpu& gpu) {
  if (!gpu.sm_clock_mhz) return "";
  std::string limits;
  if (gpu.clock_limits) {
    for (const std::string& each : *gpu.clock_limits) {
      limits += (limits.empty() ? ", limited by " : " and ") + each;
    }
  }
  return fmt::format("{} MHz{}", *gpu.sm_clock_mhz, limits);
}

std::string board_errors_text(const proto::Gpu& gpu) {
  const std::string xid = count_text(gpu.xid_errors.value_or(0), "Xid");
  const std::string ecc = count_text(gpu.ecc_uncorrected.value_or(0), "uncorrected ECC");
  return xid.empty() || ecc.empty() ? xid + ecc : xid + ", " + ecc;
}

}  // namespace gpurota::cli
