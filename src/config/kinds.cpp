// The kinds of values: the functions of setting.h that read and show one.
#include "base/nearest.h"
#include "base/text.h"
#include "config/setting.h"
#include "core/compute_capability.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gpurota::config {
namespace {

using Kind = Value::Kind;
using Milliseconds = std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::array kUnits = {Unit{"d", 86400000}, Unit{"h", 3600000}, Unit{"m", 60000},
                               Unit{"s", 1000}, Unit{"ms", 1}};

// "2.5h" in ms; nothing: not a time.
std::optional<double> milliseconds_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& each : kUnits) {
    if (each.name == unit) return number * static_cast<double>(each.milliseconds);
  }
  return std::nullopt;
}

std::string not_a_time(const Value& value, std::string_view longest, std::string_view examples) {
  if (value.is(Kind::kNumber)) {
    return fmt::format("{} has no unit: write a time such as \"{}s\" or \"{}m\"", value.number,
                       value.number, value.number);
  }
  return fmt::format("{} is not a time: write a time up to {} such as {}", quoted(value), longest,
                     examples);
}

std::string take_duration(const Value& value, Milliseconds least, Milliseconds most,
                          Milliseconds& into) {
  const auto time = value.is(Kind::kText) ? milliseconds_in(value.text) : std::nullopt;
  if (!time) return not_a_time(value, "a day", "\"250ms\", \"5s\" or \"2m\"");
  if (*time < static_cast<double>(least.count())) {
    return fmt::format("{} is too short: at least {} ms", quoted(value), least.count());
  }
  if (*time > static_cast<double>(most.count())) {
    return fmt::format("{} is too long: at most {}", quoted(value), text_of(most));
  }
  into = Milliseconds(static_cast<std::int64_t>(*time));
  return {};
}

// Nobody means so few bytes: a unit is missing.
std::string forgotten_unit(std::int64_t number) {
  const char* const unit = number <= 256 ? "G" : number <= 262144 ? "M" : "K";
  return fmt::format("'{0}' is {0} bytes; did you mean {0}{1}?", number, unit);
}

bool lacks_unit(std::int64_t number) {
  return number > 0 && number < static_cast<std::int64_t>(kMiB.count());
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string take_size(const Value& value, SizeSpec& into) {
  if (!value.is(Kind::kText)) {
    return fmt::format("{} is not a size: write a size such as \"8G\" or \"50%\"", quoted(value));
  }
  const auto parsed = parse_size_spec(value.text);
  if (!parsed) return parsed.error().message;
  const auto bytes = static_cast<std::int64_t>(parsed->bytes.count());
  if (is_number(value.text) && lacks_unit(bytes)) return forgotten_unit(bytes);
  into = *parsed;
  return {};
}

template <class Enum>
struct Word {
  std::string_view text;
  Enum value;
};

// "\"yield\", \"stop\" or \"keep\"".
template <class Words>
std::string listed(const Words& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char* const between = i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += fmt::format("{}\"{}\"", between, words[i].text);
  }
  return text;
}

template <class Words, class Enum>
std::string take_word(const Words& words, const Value& value, Enum& into) {
  std::vector<std::string> known;
  for (const auto& word : words) {
    if (value.is(Kind::kText) && value.text == word.text) {
      into = word.value;
      return {};
    }
    known.emplace_back(word.text);
  }
  std::string what = fmt::format("{} is not known here: write {}", quoted(value), listed(words));
  const std::string meant = nearest_name(value.text, known);
  return meant.empty() ? what : fmt::format("{}; did you mean \"{}\"?", what, meant);
}

template <class Words, class Enum>
std::string_view word_of(const Words& words, Enum value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  return {};
}

template <class Words, class Enum>
Setting choice(const Words& words, Enum& into) {
  return simple([&words, &into](const Value& value) { return take_word(words, value, into); },
                [&words, &into] { return std::string(word_of(words, into)); });
}

constexpr std::array kPrivacies = {Word<Privacy>{"owner", Privacy::kOwner},
                                   Word<Privacy>{"open", Privacy::kOpen}};
constexpr std::array kEnforcements = {Word<Enforcement>{"auto", Enforcement::kAuto},
                                      Word<Enforcement>{"library", Enforcement::kLibrary},
                                      Word<Enforcement>{"driver", Enforcement::kDriver}};
constexpr std::array kActions = {Word<WatchAction>{"report", WatchAction::kReport},
                                 Word<WatchAction>{"notify", WatchAction::kNotify},
                                 Word<WatchAction>{"stop", WatchAction::kStop}};
constexpr std::array kExpired = {Word<Expired>{"yield", Expired::kYield},
                                 Word<Expired>{"stop", Expired::kStop},
                                 Word<Expired>{"keep", Expired::kKeep}};
constexpr std::array kOpenEnded = {
    Word<Bookings::OpenEnded>{"until-booking", Bookings::OpenEnded::kUntilBooking},
    Word<Bookings::OpenEnded>{"wait", Bookings::OpenEnded::kWait}};
constexpr std::array kWhenFull = {
    Word<Automatic::WhenFull>{"refuse", Automatic::WhenFull::kRefuse},
    Word<Automatic::WhenFull>{"unmanaged", Automatic::WhenFull::kUnmanaged}};
constexpr std::array kSoftPolicies = {
    Word<SoftLimit::Policy>{"warn", SoftLimit::Policy::kWarn},
    Word<SoftLimit::Policy>{"throttle", SoftLimit::Policy::kThrottle},
    Word<SoftLimit::Policy>{"evict", SoftLimit::Policy::kEvict},
    Word<SoftLimit::Policy>{"stop", SoftLimit::Policy::kStop}};
constexpr std::array kLoweredPolicies = {
    Word<LoweredLimit::Policy>{"keep", LoweredLimit::Policy::kKeep},
    Word<LoweredLimit::Policy>{"stop", LoweredLimit::Policy::kStop}};
constexpr std::array kTurnsModes = {Word<Turns::Mode>{"auto", Turns::Mode::kAuto},
                                    Word<Turns::Mode>{"on", Turns::Mode::kOn},
                                    Word<Turns::Mode>{"off", Turns::Mode::kOff}};

}  // namespace

Setting simple(std::function<std::string(const Value&)> take, std::function<std::string()> text) {
  return optional_setting(std::move(take),
                          [text = std::move(text)] { return std::optional<std::string>(text()); });
}

Setting optional_setting(std::function<std::string(const Value&)> take,
                         std::function<std::optional<std::string>()> text) {
  Setting setting;
  setting.take = [take = std::move(take)](const Value& value, const Complain& complain) {
    if (std::string what = take(value); !what.empty()) complain(value, {}, std::move(what));
  };
  setting.texts = [text = std::move(text)] {
    std::optional<std::string> shown = text();
    return shown ? std::vector<std::string>{std::move(*shown)} : std::vector<std::string>();
  };
  return setting;
}

Setting restart(Setting setting) {
  setting.takes_restart = true;
  return setting;
}

std::string text_of(Bytes amount) {
  constexpr std::array<std::pair<Bytes, char>, 4> kNames = {
      {{Bytes(std::uint64_t{1} << 40), 'T'}, {kGiB, 'G'}, {kMiB, 'M'}, {kKiB, 'K'}}};
  for (const auto& [unit, name] : kNames) {
    if (amount.is_zero() || amount.count() % unit.count() != 0) continue;
    return fmt::format("{}{}", amount.count() / unit.count(), name);
  }
  return fmt::format("{}", amount.count());
}

std::string text_of(const SizeSpec& size) {
  return size.percent > 0 ? fmt::format("{}%", size.percent) : text_of(size.bytes);
}

std::string text_of(Milliseconds time) {
  for (const Unit& unit : kUnits) {
    if (time.count() == 0 || time.count() % unit.milliseconds != 0) continue;
    return fmt::format("{}{}", time.count() / unit.milliseconds, unit.name);
  }
  return "0s";
}

std::string take_bytes(const Value& value, Bytes& into) {
  std::int64_t number = value.number;
  if (value.is(Kind::kText)) {
    if (value.text == "0") {
      into = Bytes();
      return {};
    }
    const auto parsed = parse_bytes(value.text);
    if (!parsed) return parsed.error().message;
    number = static_cast<std::int64_t>(parsed->count());
    if (is_number(value.text) && lacks_unit(number)) return forgotten_unit(number);
  } else if (!value.is(Kind::kNumber) || number < 0) {
    return fmt::format("{} is not a size: write a size such as \"1G\" or \"512M\"", quoted(value));
  } else if (lacks_unit(number)) {
    return forgotten_unit(number);
  }
  into = Bytes(static_cast<std::uint64_t>(number));
  return {};
}

std::string take_long_duration(const Value& value, std::chrono::seconds& into,
                               std::chrono::seconds least) {
  const auto time = value.is(Kind::kText) ? milliseconds_in(value.text) : std::nullopt;
  const auto shortest = static_cast<double>(Milliseconds(least).count());
  const bool is_part = time && *time > 0 && *time < 1000;
  if (!time || *time < shortest || is_part || *time > 3.2e10 || value.text.ends_with("ms")) {
    return not_a_time(value, "a year", "\"30m\", \"12h\" or \"7d\"");
  }
  into = std::chrono::seconds(static_cast<std::int64_t>(*time / 1000));
  return {};
}

std::string take_count(const Value& value, int least, int most, int& into) {
  const std::string wanted = fmt::format("write a whole number from {} to {}", least, most);
  if (!value.is(Kind::kNumber)) {
    const bool quotes = value.is(Kind::kText) && is_number(value.text);
    return fmt::format("{} is not a number: {}{}", quoted(value), wanted,
                       quotes ? ", without quotes" : "");
  }
  if (value.number < least || value.number > most) {
    return fmt::format("{} is out of range: {}", value.number, wanted);
  }
  into = static_cast<int>(value.number);
  return {};
}

std::string take_flag(const Value& value, bool& into) {
  if (!value.is(Kind::kFlag)) {
    const bool quotes = value.text == "true" || value.text == "false";
    return fmt::format("{} is not a switch: write true or false{}", quoted(value),
                       quotes ? ", without quotes" : "");
  }
  into = value.flag;
  return {};
}

std::string take_names(const Value& value, std::vector<std::string>& into) {
  constexpr std::string_view kWanted =
      "write names in quotes, between brackets: [\"alice\", \"bob\"]";
  into.clear();
  if (!value.is(Kind::kList)) return fmt::format("{} is not a list: {}", quoted(value), kWanted);
  for (const Value& each : value.list) {
    if (!each.is(Kind::kText) || each.text.empty()) {
      return fmt::format("{} is not a name: {}", quoted(each), kWanted);
    }
    into.push_back(each.text);
  }
  return {};
}

std::string names_text(const std::vector<std::string>& names) {
  return fmt::format("[{}]", fmt::join(names, ", "));
}

std::string take_action(const Value& value, WatchAction& into) {
  return take_word(kActions, value, into);
}

const char* action_text(WatchAction action) { return word_of(kActions, action).data(); }

Setting bytes(Bytes& into) {
  return simple([&into](const Value& value) { return take_bytes(value, into); },
                [&into] { return text_of(into); });
}

Setting bytes(std::optional<Bytes>& into) {
  return optional_setting([&into](const Value& value) { return take_bytes(value, into.emplace()); },
                          [&into] { return into ? std::optional(text_of(*into)) : std::nullopt; });
}

Setting size(SizeSpec& into) {
  return optional_setting(
      [&into](const Value& value) { return take_size(value, into); },
      [&into] { return into == SizeSpec{} ? std::nullopt : std::optional(text_of(into)); });
}

Setting size(std::optional<SizeSpec>& into) {
  return optional_setting([&into](const Value& value) { return take_size(value, into.emplace()); },
                          [&into] { return into ? std::optional(text_of(*into)) : std::nullopt; });
}

Setting duration(Milliseconds& into, Milliseconds least, Milliseconds most) {
  return simple(
      [&into, least, most](const Value& value) { return take_duration(value, least, most, into); },
      [&into] { return text_of(into); });
}

Setting long_duration(std::chrono::seconds& into, std::chrono::seconds least) {
  return simple(
      [&into, least](const Value& value) { return take_long_duration(value, into, least); },
      [&into] { return text_of(Milliseconds(into)); });
}

Setting count(int& into, int least, int most) {
  return simple(
      [&into, least, most](const Value& value) { return take_count(value, least, most, into); },
      [&into] { return fmt::format("{}", into); });
}

Setting flag(bool& into) {
  return simple([&into](const Value& value) { return take_flag(value, into); },
                [&into] { return std::string(into ? "true" : "false"); });
}

Setting text(std::string& into) {
  return simple(
      [&into](const Value& value) -> std::string {
        if (!value.is(Kind::kText)) {
          return fmt::format("{} is not text: write a string in quotes", quoted(value));
        }
        into = value.text;
        return {};
      },
      [&into] { return into.empty() ? std::string("\"\"") : into; });
}

Setting names(std::vector<std::string>& into) {
  return simple([&into](const Value& value) { return take_names(value, into); },
                [&into] { return names_text(into); });
}

Setting compute_capability(std::string& into) {
  return optional_setting(
      [&into](const Value& value) -> std::string {
        if (!value.is(Kind::kText) || !parse_compute_capability(value.text)) {
          return fmt::format("{} is not a compute capability: write it in quotes, as \"8.0\"",
                             quoted(value));
        }
        into = value.text;
        return {};
      },
      [&into] { return into.empty() ? std::nullopt : std::optional(into); });
}

Setting gpu_names(std::vector<std::string>& into) {
  return optional_setting(
      [&into](const Value& value) -> std::string {
        constexpr std::string_view kWanted = "write indices or UUIDs between brackets: [0, 1]";
        into.clear();
        if (!value.is(Kind::kList))
          return fmt::format("{} is not a list: {}", quoted(value), kWanted);
        for (const Value& each : value.list) {
          const bool index = each.is(Kind::kNumber) && each.number >= 0;
          if (!index && (!each.is(Kind::kText) || each.text.empty())) {
            return fmt::format("{} is not a GPU: {}", quoted(each), kWanted);
          }
          into.push_back(index ? std::to_string(each.number) : each.text);
        }
        return {};
      },
      [&into] { return into.empty() ? std::nullopt : std::optional(names_text(into)); });
}

Setting privacy(Privacy& into) { return choice(kPrivacies, into); }
Setting enforcement(Enforcement& into) { return choice(kEnforcements, into); }
Setting action(WatchAction& into) { return choice(kActions, into); }
Setting expired(Expired& into) { return choice(kExpired, into); }
Setting open_ended(Bookings::OpenEnded& into) { return choice(kOpenEnded, into); }
Setting when_full(Automatic::WhenFull& into) { return choice(kWhenFull, into); }
Setting soft_policy(SoftLimit::Policy& into) { return choice(kSoftPolicies, into); }
Setting lowered_policy(LoweredLimit::Policy& into) { return choice(kLoweredPolicies, into); }

Setting turns_capacity(Turns::Gpu& into) { return size(into.capacity); }

Setting turns_mode(Turns::Gpu& into) {
  return optional_setting(
      [&into](const Value& value) { return take_word(kTurnsModes, value, into.mode.emplace()); },
      [&into] {
        return into.mode ? std::optional(std::string(word_of(kTurnsModes, *into.mode)))
                         : std::nullopt;
      });
}

Setting turns_quantum(Turns::Gpu& into) {
  return optional_setting(
      [&into](const Value& value) -> std::string {
        const auto parsed = parse_quantum(value.is(Kind::kText) ? value.text : std::string());
        if (!parsed) {
          return fmt::format("{} is not a quantum: {}", quoted(value), parsed.error().message);
        }
        into.quantum = *parsed;
        return {};
      },
      [&into]() -> std::optional<std::string> {
        if (!into.quantum) return std::nullopt;
        return into.quantum->count() == 0 ? std::string("auto") : text_of(*into.quantum);
      });
}

std::optional<Turns::Mode> parse_turns_mode(std::string_view word) {
  for (const auto& mode : kTurnsModes) {
    if (mode.text == word) return mode.value;
  }
  return std::nullopt;
}

Result<Milliseconds> parse_quantum(std::string_view text) {
  if (text == "auto") return Milliseconds(0);
  const auto time = milliseconds_in(text);
  if (!time || *time < 10 || *time > 3600000) {
    return fail(Code::kInvalid, "write \"auto\", or a time from \"10ms\" to \"1h\"");
  }
  return Milliseconds(static_cast<std::int64_t>(*time));
}

std::string no_such(std::string_view what, const std::string& meant) {
  return meant.empty() ? fmt::format("no such {}", what)
                       : fmt::format("no such {}; did you mean {}?", what, meant);
}

}  // namespace gpurota::config
