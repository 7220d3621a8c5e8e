// The settings below [limits]: limit() of setting.h.
#include "config/limit_names.h"
#include "config/setting.h"
#include "core/compute_share.h"

#include <fmt/format.h>

namespace gpurota::config {
namespace {

// Accepts "unlimited", and what `plain` reads.
template <class T, class Take, class Text>
Setting unlimited_or(std::optional<T>& into, T unlimited, Take plain, Text text) {
  return optional_setting(
      [&into, unlimited, plain](const Value& value) -> std::string {
        if (value.is(Value::Kind::kText) && value.text == "unlimited") {
          into = unlimited;
          return {};
        }
        const std::string problem = plain(value, into.emplace());
        return problem.empty() || problem.ends_with("?") ? problem : problem + ", or \"unlimited\"";
      },
      [&into, unlimited, text]() -> std::optional<std::string> {
        if (!into) return std::nullopt;
        return *into == unlimited ? std::string("unlimited") : text(*into);
      });
}

std::string number_text(int number) { return fmt::format("{}", number); }

Setting unlimited_count(std::optional<int>& into) {
  constexpr int kMany = 1000000;
  return unlimited_or(
      into, UserLimits::kUnlimited,
      [](const Value& value, int& count) { return take_count(value, 0, kMany, count); },
      number_text);
}

Setting unlimited_bytes(std::optional<Bytes>& into) {
  return unlimited_or(into, UserLimits::kUnlimitedBytes, take_bytes,
                      [](Bytes amount) { return text_of(amount); });
}

Setting limited_count(std::optional<int>& into, int least, int most) {
  return optional_setting(
      [&into, least, most](const Value& value) {
        return take_count(value, least, most, into.emplace());
      },
      [&into] { return into ? std::optional(number_text(*into)) : std::nullopt; });
}

Setting limited_flag(std::optional<bool>& into) {
  return optional_setting([&into](const Value& value) { return take_flag(value, into.emplace()); },
                          [&into] {
                            using Text = std::optional<std::string>;
                            return into ? Text(*into ? "true" : "false") : Text();
                          });
}

// "50%": of a GPU's compute time.
Setting limited_share(std::optional<int>& into) {
  return optional_setting(
      [&into](const Value& value) -> std::string {
        const auto percent = parse_compute_share(value.is(Value::Kind::kText) ? value.text : "");
        if (percent) into = *percent;
        return percent ? "" : "write a part of a GPU's compute time from \"0%\" to \"95%\"";
      },
      [&into] { return into ? std::optional(fmt::format("{}%", *into)) : std::nullopt; });
}

}  // namespace

Setting limit(UserLimits& into, std::string_view name) {
  if (name == "gpus") return unlimited_count(into.gpus);
  if (name == "hours") return unlimited_count(into.hours);
  if (name == "waiting") return unlimited_count(into.waiting);
  if (name == "bookings") return unlimited_count(into.bookings);
  if (name == "priority") return limited_count(into.priority, -100, 100);
  if (name == "weight") return limited_count(into.weight, 1, 10000);
  if (name == "compute") return limited_share(into.compute);
  if (name == "interactive") return limited_flag(into.interactive);
  if (name == "memory") return unlimited_bytes(into.memory);
  if (name == "pinned") return unlimited_bytes(into.pinned);
  return unlimited_or(
      name == "book_ahead" ? into.book_ahead : into.duration, UserLimits::kUnlimitedTime,
      [](const Value& value, std::chrono::seconds& time) {
        return take_long_duration(value, time);
      },
      [](std::chrono::seconds time) { return text_of(time); });
}

}  // namespace gpurota::config
