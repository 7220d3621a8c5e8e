#define TOML_EXCEPTIONS 0
#include "base/text.h"
#include "config/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <functional>
#include <map>

namespace gpurota::config {
namespace {

using Milliseconds = std::chrono::milliseconds;
// Returns what is wrong with the value, or an empty string after it has been taken over.
using Setter = std::function<std::string(const toml::node&)>;

Result<Milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double scale = unit == "ms"  ? 1
                       : unit == "s" ? 1e3
                       : unit == "m" ? 6e4
                       : unit == "h" ? 3.6e6
                                     : 0;
  if (error != std::errc() || scale == 0 || number < 0 || number * scale > 8.64e7) {
    return fail(Code::kInvalid, "write a time up to a day such as \"250ms\", \"5s\" or \"2m\"");
  }
  return Milliseconds(static_cast<std::int64_t>(number * scale));
}

Setter bytes(Bytes& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto text = node.value<std::string>();
    const auto number = node.as_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (number && *number >= 0) {
      into = Bytes(static_cast<std::uint64_t>(*number));
      return {};
    }
    if (!text) return "write a size such as \"1G\" or \"512M\"";
    auto parsed = parse_bytes(*text);
    if (!parsed) return parsed.error().message;
    into = *parsed;
    return {};
  };
}

Setter duration(Milliseconds& into, Milliseconds least) {
  return [&into, least](const toml::node& node) -> std::string {
    const auto text = node.value<std::string>();
    auto parsed = parse_duration(text.value_or(""));
    if (!parsed) return parsed.error().message;
    if (*parsed < least) return fmt::format("at least {} ms", least.count());
    into = *parsed;
    return {};
  };
}

Setter count(int& into, int least, int most) {
  return [&into, least, most](const toml::node& node) -> std::string {
    const auto number = node.as_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (!number || *number < least || *number > most) {
      return fmt::format("write a whole number from {} to {}", least, most);
    }
    into = static_cast<int>(*number);
    return {};
  };
}

Setter text(std::string& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (!value) return "write a text in quotes";
    into = *value;
    return {};
  };
}

Setter privacy(Privacy& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (value == "owner") {
      into = Privacy::kOwner;
    } else if (value == "open") {
      into = Privacy::kOpen;
    } else {
      return "write \"owner\" or \"open\"";
    }
    return {};
  };
}

std::map<std::string, Setter, std::less<>> setters(Config& config) {
  return {
      {"group", text(config.group)},
      {"privacy", privacy(config.privacy)},
      {"unreserved_threshold", bytes(config.unreserved_threshold)},
      {"watch_period", duration(config.watch_period, Milliseconds(10))},
      {"grace", duration(config.grace, Milliseconds(0))},
      {"reconnect_grace", duration(config.reconnect_grace, Milliseconds(0))},
      {"max_leases_per_user", count(config.max_leases_per_user, 1, 100000)},
      {"max_tenants_per_lease", count(config.max_tenants_per_lease, 1, 100000)},
      {"max_connections_per_user", count(config.max_connections_per_user, 1, 100000)},
  };
}

tl::unexpected<Error> wrong(const std::string& file, const toml::source_region& where,
                            std::string_view what) {
  return fail(Code::kInvalid, fmt::format("{}:{}: {}", file, where.begin.line, what));
}

}  // namespace

Result<Config> parse(std::string_view source, const std::string& file) {
  const toml::parse_result parsed = toml::parse(source);
  if (!parsed) {
    return wrong(file, parsed.error().source(), display_text(parsed.error().description()));
  }
  Config config;
  const auto known = setters(config);
  for (const auto& [key, node] : parsed.table()) {
    const std::string name = display_text(key.str(), 60);
    const auto setter = known.find(key.str());
    if (setter == known.end()) {
      return wrong(file, node.source(),
                   fmt::format("there is no setting \"{}\", see gpurota.toml(5)", name));
    }
    if (const std::string problem = setter->second(node); !problem.empty()) {
      return wrong(file, node.source(), fmt::format("{}: {}", name, problem));
    }
  }
  return config;
}

}  // namespace gpurota::config
