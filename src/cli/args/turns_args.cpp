#include "cli/args/turns_args.h"

#include "base/text.h"
#include "core/compute_share.h"

#include <fmt/format.h>

#include <charconv>

namespace gpurota::cli {
namespace {

constexpr int kHigh = 10;
constexpr int kMost = 100;

}  // namespace

Result<Command> turns_command(const std::string& name, const Raw& raw) {
  GPUROTA_ASSIGN_OR_RETURN(Words gpu_ids, split_ids(raw.gpu_ids));
  if (name == "turns") return TurnsOptions{raw.json, std::move(gpu_ids)};
  SetOptions set;
  set.gpu_ids = std::move(gpu_ids);
  GPUROTA_ASSIGN_OR_RETURN(set.capacity, size_of("--capacity", raw.capacity));
  set.quantum = raw.quantum;
  set.turns = raw.turns;
  set.reset = raw.reset;
  if (set.gpu_ids.empty()) {
    return fail(Code::kInvalid,
                "which GPU? For instance: gpurota set --gpu-ids 0 --capacity 24G (--gpu-ids all: "
                "each GPU)");
  }
  if (!set.capacity && !set.quantum && !set.turns && !set.reset) {
    return fail(Code::kInvalid,
                "nothing to set: give --capacity, --quantum, --turns, or --reset to return to the "
                "configuration");
  }
  return set;
}

std::optional<LatencyClass> latency_of(const std::optional<std::string>& text) {
  return text ? parse_latency_class(*text) : std::nullopt;
}

Result<std::optional<int>> compute_of(const std::optional<std::string>& text) {
  if (!text) return std::optional<int>();
  auto percent = parse_compute_share(*text);
  if (!percent) return tl::unexpected(std::move(percent).error().context("--compute"));
  return std::optional(*percent);
}

Result<std::optional<int>> compute_max_of(const std::optional<std::string>& text) {
  if (!text) return std::optional<int>();
  auto percent = parse_compute_bound(*text);
  if (!percent) return tl::unexpected(std::move(percent).error().context("--compute-max"));
  return std::optional(*percent);
}

Result<std::optional<int>> priority_of(const std::optional<std::string>& text) {
  if (!text) return std::optional<int>();
  if (*text == "high") return std::optional(kHigh);
  if (*text == "normal") return std::optional(0);
  if (*text == "low") return std::optional(-kHigh);
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < -kMost ||
      number > kMost) {
    return fail(
        Code::kInvalid,
        fmt::format("--priority: '{}' is not a priority: write high, normal, low, or a number "
                    "from -{} to {}",
                    display_text(*text, 40), kMost, kMost));
  }
  return std::optional(number);
}

}  // namespace gpurota::cli
