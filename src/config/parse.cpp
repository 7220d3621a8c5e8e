#define TOML_EXCEPTIONS 0
#include "base/text.h"
#include "config/config.h"
#include "config/limit_fields.h"
#include "core/lease.h"

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
  if (error != std::errc() || scale == 0 || !(number >= 0) || number * scale > 8.64e7) {
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
    if (text == "0") {
      into = Bytes();
      return {};
    }
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

Setter flag(bool& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.as_boolean() ? node.value<bool>() : std::nullopt;
    if (!value) return "write true or false";
    into = *value;
    return {};
  };
}

// "8G" or "50%".
std::string take_size(const toml::node& node, SizeSpec& into) {
  const auto text = node.as_string() ? node.value<std::string>() : std::nullopt;
  if (!text) return "write a size such as \"8G\" or \"50%\"";
  auto parsed = parse_size_spec(*text);
  if (!parsed) return parsed.error().message;
  into = *parsed;
  return {};
}

Setter size(SizeSpec& into) {
  return [&into](const toml::node& node) { return take_size(node, into); };
}

Setter size(std::optional<SizeSpec>& into) {
  return [&into](const toml::node& node) {
    SizeSpec taken;
    std::string problem = take_size(node, taken);
    if (problem.empty()) into = taken;
    return problem;
  };
}

Setter text(std::string& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (!value) return "write a string in quotes";
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

Result<WatchAction> parse_action(const toml::node* node) {
  const auto word = node ? node->value<std::string>() : std::nullopt;
  if (word == "report") return WatchAction::kReport;
  if (word == "notify") return WatchAction::kNotify;
  if (word == "stop") return WatchAction::kStop;
  return fail(Code::kInvalid, "write \"report\", \"notify\" or \"stop\"");
}

Setter action(WatchAction& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto parsed = parse_action(&node);
    if (!parsed) return parsed.error().message;
    into = *parsed;
    return {};
  };
}

// Entries of an array of tables ([[watch.rule]]), each with a parser that says what is wrong.
template <class Entry>
Setter entries(std::vector<Entry>& into, std::string (*parse)(const toml::table&, Entry&)) {
  return [&into, parse](const toml::node& node) -> std::string {
    const toml::array* array = node.as_array();
    if (!array) return "write it as a list of tables, with [[two brackets]]";
    for (std::size_t i = 0; i < array->size(); ++i) {
      const toml::table* table = (*array)[i].as_table();
      std::string problem = table ? parse(*table, into.emplace_back()) : "not a table";
      if (!problem.empty()) return fmt::format("number {}: {}", i + 1, problem);
    }
    return {};
  };
}

std::string parse_names(const toml::node& node, std::vector<std::string>& into) {
  const toml::array* array = node.as_array();
  for (std::size_t i = 0; array && i < array->size(); ++i) {
    const auto name = (*array)[i].value<std::string>();
    if (!name || name->empty()) return "write names in quotes, between brackets";
    into.push_back(*name);
  }
  return array ? "" : "write names in quotes, between brackets: [\"alice\", \"bob\"]";
}

std::string parse_rule(const toml::table& table, WatchRule& rule) {
  for (const auto& [key, node] : table) {
    std::string problem;
    if (key.str() == "finding") {
      rule.finding = node.value<std::string>().value_or("");
      const bool known = rule.finding == "unreserved_use" || rule.finding == "foreign_use" ||
                         rule.finding == "over_limit" || rule.finding == "unused" ||
                         rule.finding == "not_limited";
      if (!known) problem = "write unreserved_use, foreign_use, over_limit, unused or not_limited";
    } else if (key.str() == "users") {
      problem = parse_names(node, rule.users);
    } else if (key.str() == "groups") {
      problem = parse_names(node, rule.groups);
    } else if (key.str() != "action") {
      problem = "there is no such setting";
    }
    if (!problem.empty()) return fmt::format("{}: {}", display_text(key.str(), 60), problem);
  }
  const auto action = parse_action(table.get("action"));
  if (!action) return "action: " + action.error().message;
  rule.action = *action;
  return rule.users.empty() && rule.groups.empty() ? "name users or groups" : "";
}

std::string parse_ignore(const toml::table& table, WatchIgnore& ignore) {
  for (const auto& [key, node] : table) {
    if (key.str() == "uid") {
      const auto uid = node.as_integer() ? node.value<std::int64_t>() : std::nullopt;
      if (!uid || *uid < 0 || *uid > 0xfffffffe) return "uid: write the number of a user";
      ignore.uid = static_cast<uid_t>(*uid);
    } else if (key.str() == "executable") {
      ignore.executable = node.value<std::string>().value_or("");
      if (!ignore.executable.starts_with("/")) return "executable: write an absolute path";
    } else {
      return fmt::format("{}: there is no such setting", display_text(key.str(), 60));
    }
  }
  return ignore.uid || !ignore.executable.empty() ? "" : "give uid, executable or both";
}

Setter expired(Expired& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (value != "yield" && value != "stop" && value != "keep") {
      return "write \"yield\", \"stop\" or \"keep\"";
    }
    into = value == "yield" ? Expired::kYield : value == "stop" ? Expired::kStop : Expired::kKeep;
    return {};
  };
}

Setter when_full(Automatic::WhenFull& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (value != "refuse" && value != "unmanaged") return "write \"refuse\" or \"unmanaged\"";
    into = value == "refuse" ? Automatic::WhenFull::kRefuse : Automatic::WhenFull::kUnmanaged;
    return {};
  };
}

Setter soft_policy(SoftLimit::Policy& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (value == "warn") {
      into = SoftLimit::Policy::kWarn;
    } else if (value == "throttle") {
      into = SoftLimit::Policy::kThrottle;
    } else if (value == "evict") {
      into = SoftLimit::Policy::kEvict;
    } else if (value == "stop") {
      into = SoftLimit::Policy::kStop;
    } else {
      return "write \"warn\", \"throttle\", \"evict\" or \"stop\"";
    }
    return {};
  };
}

Setter lowered_policy(LoweredLimit::Policy& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto value = node.value<std::string>();
    if (value != "keep" && value != "stop") return "write \"keep\" or \"stop\"";
    into = value == "keep" ? LoweredLimit::Policy::kKeep : LoweredLimit::Policy::kStop;
    return {};
  };
}

// A delay of an answer that a program waits for: far below its patience for a daemon.
Setter delay(Milliseconds& into) {
  return [&into](const toml::node& node) -> std::string {
    std::string problem = duration(into, Milliseconds(1))(node);
    if (problem.empty() && into > Milliseconds(2000)) return "at most 2 s";
    return problem;
  };
}

Setter turns_mode(std::optional<Turns::Mode>& into) {
  return [&into](const toml::node& node) -> std::string {
    into = parse_turns_mode(node.value<std::string>().value_or(""));
    return into ? "" : "write \"auto\", \"on\" or \"off\"";
  };
}

Setter quantum(std::optional<Milliseconds>& into) {
  return [&into](const toml::node& node) -> std::string {
    const auto parsed = parse_quantum(node.value<std::string>().value_or(""));
    if (!parsed) return parsed.error().message;
    into = *parsed;
    return {};
  };
}

Setter names(std::vector<std::string>& into) {
  return [&into](const toml::node& node) { return parse_names(node, into); };
}

WrittenValue written(const toml::node& node) {
  return {node.value<std::string>(), node.as_integer() ? node.value<std::int64_t>() : std::nullopt};
}

Setter long_duration(std::chrono::seconds& into) {
  return [&into](const toml::node& node) -> std::string {
    std::optional<std::chrono::seconds> value;
    std::string problem = set_long_duration(value, written(node));
    if (value) into = *value;
    return problem;
  };
}

// By name; those in a [table] have its name and a dot in front.
std::map<std::string, Setter, std::less<>> setters(Config& config) {
  return {
      {"group", text(config.group)},
      {"admin_group", text(config.admin_group)},
      {"keep_free_gpus", duration(config.keep_free_gpus, Milliseconds(0))},
      {"hours_window", long_duration(config.hours_window)},
      {"privacy", privacy(config.privacy)},
      {"unreserved_threshold", bytes(config.unreserved_threshold)},
      {"watch_period", duration(config.watch_period, Milliseconds(10))},
      {"grace", duration(config.grace, Milliseconds(0))},
      {"reconnect_grace", duration(config.reconnect_grace, Milliseconds(0))},
      {"watch.unreserved_use", action(config.watch.unreserved_use)},
      {"watch.foreign_use", action(config.watch.foreign_use)},
      {"watch.over_limit", action(config.watch.over_limit)},
      {"watch.unused", action(config.watch.unused)},
      {"watch.not_limited", action(config.watch.not_limited)},
      {"watch.stop_grace", duration(config.watch.stop_grace, Milliseconds(0))},
      {"watch.unused_after", duration(config.watch.unused_after, Milliseconds(0))},
      {"watch.unused_grace", duration(config.watch.unused_grace, Milliseconds(0))},
      {"watch.idle_period", duration(config.watch.idle_period, Milliseconds(10))},
      {"watch.rule", entries(config.watch.rules, parse_rule)},
      {"watch.ignore", entries(config.watch.ignore, parse_ignore)},
      {"audit_size_per_user", bytes(config.audit_size_per_user)},
      {"history_days", count(config.history_days, 1, 36500)},
      {"expired_reservation", expired(config.expired_reservation)},
      {"max_leases_per_user", count(config.max_leases_per_user, 1, 100000)},
      {"max_new_leases_per_hour", count(config.max_new_leases_per_hour, 1, 100000000)},
      {"program_notices", flag(config.program_notices)},
      {"max_tenants_per_lease", count(config.max_tenants_per_lease, 1, 100000)},
      {"max_tenants_per_user", count(config.max_tenants_per_user, 1, 1000000)},
      {"max_usage_rows_per_user", count(config.max_usage_rows_per_user, 100, 10000000)},
      {"job_log_size_per_user", bytes(config.job_log_size_per_user)},
      {"unread_size_per_user", bytes(config.unread_size_per_user)},
      {"max_connections_per_user", count(config.max_connections_per_user, 1, 100000)},
      {"soft_limit.policy", soft_policy(config.soft_limit.policy)},
      {"soft_limit.throttle_delay", delay(config.soft_limit.throttle_delay)},
      {"soft_limit.grace", duration(config.soft_limit.grace, Milliseconds(0))},
      {"soft_limit.tell_owner", flag(config.soft_limit.tell_owner)},
      {"lowered_limit.policy", lowered_policy(config.lowered_limit.policy)},
      {"lowered_limit.grace", duration(config.lowered_limit.grace, Milliseconds(0))},
      {"filler.load_percent", count(config.filler.load_percent, 1, 101)},
      {"filler.count_against_limits", flag(config.filler.count_against_limits)},
      {"filler.longest_stay", duration(config.filler.longest_stay, Milliseconds(0))},
      {"automatic.enabled", flag(config.automatic.enabled)},
      {"automatic.users", names(config.automatic.users)},
      {"automatic.memory", size(config.automatic.memory)},
      {"automatic.soft_limit", size(config.automatic.soft_limit)},
      {"automatic.gpus", count(config.automatic.gpus, 1, kMaxLeaseGpus)},
      {"automatic.when_full", when_full(config.automatic.when_full)},
      {"turns.host_budget", size(config.turns.host_budget)},
      {"turns.pinned", size(config.turns.pinned)},
      {"turns.moving_percent", count(config.turns.moving_percent, 1, 100)},
      {"turns.priority_percent", count(config.turns.priority_percent, 0, 95)},
      {"turns.idle_release", duration(config.turns.idle_release, Milliseconds(1))},
      {"turns.yield_deadline", duration(config.turns.yield_deadline, Milliseconds(100))},
      {"turns.stop_at_deadline", flag(config.turns.stop_at_deadline)},
      {"turns.stopped_deadline", duration(config.turns.stopped_deadline, Milliseconds(0))},
      {"turns.clean_blocks", flag(config.turns.clean_blocks)},
  };
}

tl::unexpected<Error> wrong(const std::string& file, const toml::source_region& where,
                            std::string_view what) {
  return fail(Code::kInvalid, fmt::format("{}:{}: {}", file, where.begin.line, what));
}

Result<void> apply(const toml::table& table, const std::string& prefix,
                   const std::map<std::string, Setter, std::less<>>& known,
                   const std::string& file) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const auto setter = known.find(path);
    const std::string name = display_text(path, 60);
    if (setter == known.end()) {
      const auto inside = known.lower_bound(path + ".");
      if (node.is_table() && inside != known.end() && inside->first.starts_with(path + ".")) {
        GPUROTA_TRY(apply(*node.as_table(), path + ".", known, file));
        continue;
      }
      if (inside != known.end() && inside->first.starts_with(path + ".")) {
        return wrong(file, node.source(), fmt::format("\"{0}\" is a section: write [{0}]", name));
      }
      return wrong(file, node.source(),
                   fmt::format("there is no setting \"{}\", see gpurota.toml(5)", name));
    }
    if (const std::string problem = setter->second(node); !problem.empty()) {
      return wrong(file, node.source(), fmt::format("{}: {}", name, problem));
    }
  }
  return {};
}

// What no single setting can tell.
Result<void> check_together(const Config& config, const std::string& file) {
  if (config.unread_size_per_user < mib(1)) {
    return fail(Code::kInvalid,
                file + ": unread_size_per_user: at least 1M, as an answer may need that");
  }
  const Automatic& automatic = config.automatic;
  if (automatic.enabled && automatic.memory == SizeSpec{}) {
    return fail(Code::kInvalid,
                file +
                    ": automatic.memory is missing: say how much of a GPU each program gets, "
                    "such as memory = \"8G\"");
  }
  if (automatic.soft_limit && config.soft_limit.policy == SoftLimit::Policy::kEvict) {
    return fail(Code::kInvalid,
                file +
                    ": automatic.soft_limit: automatic leases are slices, whose memory cannot be "
                    "moved out as soft_limit.policy = \"evict\" says: leave one of them out");
  }
  return {};
}

using Setters = std::map<std::string, Setter, std::less<>>;

void add_limits(Setters& known, const std::string& prefix, UserLimits& limits) {
  for (const char* name : kLimitNames) {
    known[prefix + name] = [&limits, name](const toml::node& node) {
      return set_limit(limits, name, written(node));
    };
  }
}

// The names behind [limits.user] and [limits.group] are the site's.
void add_named_limits(Setters& known, const toml::table& file, const std::string& kind,
                      std::map<std::string, UserLimits>& rules) {
  const toml::table* const names = file["limits"][kind].as_table();
  if (!names) return;
  for (const auto& [name, node] : *names) {
    const std::string spelled(name.str());
    add_limits(known, "limits." + kind + "." + spelled + ".", rules[spelled]);
  }
}

void add_turns(Setters& known, const std::string& prefix, Turns::Gpu& gpu) {
  const Setters settings = {
      {"capacity", size(gpu.capacity)},
      {"mode", turns_mode(gpu.mode)},
      {"quantum", quantum(gpu.quantum)},
  };
  for (const auto& [name, setter] : settings) known[prefix + name] = setter;
}

// The names behind [turns.gpu] are those of GPUs.
void add_gpu_turns(Setters& known, const toml::table& file, Turns& turns) {
  add_turns(known, "turns.", turns.every);
  const toml::table* const gpus = file["turns"]["gpu"].as_table();
  if (!gpus) return;
  for (const auto& [name, node] : *gpus) {
    const std::string spelled(name.str());
    add_turns(known, "turns.gpu." + spelled + ".", turns.gpus[spelled]);
  }
}

}  // namespace

std::optional<Turns::Mode> parse_turns_mode(std::string_view word) {
  if (word == "auto") return Turns::Mode::kAuto;
  if (word == "on") return Turns::Mode::kOn;
  if (word == "off") return Turns::Mode::kOff;
  return std::nullopt;
}

Result<std::chrono::milliseconds> parse_quantum(std::string_view text) {
  if (text == "auto") return Milliseconds(0);
  const auto parsed = parse_duration(text);
  if (!parsed || *parsed < Milliseconds(10) || *parsed > Milliseconds(3600000)) {
    return fail(Code::kInvalid, "write \"auto\", or a time from \"10ms\" to \"1h\"");
  }
  return *parsed;
}

Result<Config> parse(std::string_view source, const std::string& file) {
  const toml::parse_result parsed = toml::parse(source);
  if (!parsed) {
    return wrong(file, parsed.error().source(), display_text(parsed.error().description()));
  }
  Config config;
  Setters known = setters(config);
  add_limits(known, "limits.", config.limits.everyone);
  add_named_limits(known, parsed.table(), "user", config.limits.users);
  add_named_limits(known, parsed.table(), "group", config.limits.groups);
  add_gpu_turns(known, parsed.table(), config.turns);
  GPUROTA_TRY(apply(parsed.table(), "", known, file));
  GPUROTA_TRY(check_together(config, file));
  return config;
}

}  // namespace gpurota::config
