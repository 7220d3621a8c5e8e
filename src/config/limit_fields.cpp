#include "config/limit_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <map>

namespace gpurota::config {
namespace {

using Field = std::function<std::string(const WrittenValue&)>;

Field count(std::optional<int>& into, int least, int most) {
  return [&into, least, most](const WrittenValue& value) -> std::string {
    if (!value.number || *value.number < least || *value.number > most) {
      return fmt::format("write a whole number from {} to {}", least, most);
    }
    into = static_cast<int>(*value.number);
    return {};
  };
}

Field bytes(std::optional<Bytes>& into) {
  return [&into](const WrittenValue& value) -> std::string {
    if (value.number && *value.number >= 0) {
      into = Bytes(static_cast<std::uint64_t>(*value.number));
      return {};
    }
    if (!value.text) return "write a size such as \"40G\"";
    auto parsed = parse_bytes(*value.text);
    if (!parsed) return parsed.error().message;
    into = *parsed;
    return {};
  };
}

template <class T>
Field or_unlimited(std::optional<T>& into, T unlimited, const Field& plain) {
  return [&into, unlimited, plain](const WrittenValue& value) -> std::string {
    if (value.text == "unlimited") {
      into = unlimited;
      return {};
    }
    const std::string problem = plain(value);
    return problem.empty() ? "" : problem + ", or \"unlimited\"";
  };
}

Field field_of(UserLimits& limits, std::string_view name) {
  constexpr int kMany = 1000000;
  const auto unlimited = [](std::optional<int>& into) {
    return or_unlimited(into, UserLimits::kUnlimited, count(into, 0, kMany));
  };
  if (name == "gpus") return unlimited(limits.gpus);
  if (name == "hours") return unlimited(limits.hours);
  if (name == "waiting") return unlimited(limits.waiting);
  if (name == "priority") return count(limits.priority, -100, 100);
  if (name == "weight") return count(limits.weight, 1, 10000);
  if (name == "duration") {
    return or_unlimited(
        limits.duration, UserLimits::kUnlimitedTime,
        [&into = limits.duration](const WrittenValue& v) { return set_long_duration(into, v); });
  }
  std::optional<Bytes>& amount = name == "memory" ? limits.memory : limits.pinned;
  return or_unlimited(amount, UserLimits::kUnlimitedBytes, bytes(amount));
}

}  // namespace

std::string set_limit(UserLimits& limits, std::string_view name, const WrittenValue& value) {
  return field_of(limits, name)(value);
}

std::string set_long_duration(std::optional<std::chrono::seconds>& into,
                              const WrittenValue& value) {
  const std::string_view text = value.text ? std::string_view(*value.text) : std::string_view();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double scale = unit == "s"   ? 1
                       : unit == "m" ? 60
                       : unit == "h" ? 3600
                       : unit == "d" ? 86400
                                     : 0;
  const bool fits = error == std::errc() && number * scale >= 1 && number * scale <= 3.2e7;
  if (!fits) return "write a time up to a year such as \"30m\", \"12h\" or \"7d\"";
  into = std::chrono::seconds(static_cast<std::int64_t>(number * scale));
  return {};
}

}  // namespace gpurota::config
