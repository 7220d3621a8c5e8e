#include "jobs/record.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

namespace gpurota::jobs {
namespace {

class Writer {
 public:
  Writer& add(std::string_view key, std::string_view value) {
    text_.append(key).push_back('\0');
    text_.append(value).push_back('\0');
    return *this;
  }
  Writer& add(std::string_view key, std::int64_t value) { return add(key, std::to_string(value)); }
  Writer& add_all(std::string_view key, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(key, value);
    return *this;
  }
  std::string text() { return std::move(text_); }

 private:
  std::string text_;
};

using Take = std::function<bool(std::string_view key, std::string value)>;

// Calls take(key, value) for each pair. kInvalid: the text is incomplete, or `take` returned false.
Result<void> read_pairs(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const auto key_end = text.find('\0');
    if (key_end == std::string_view::npos) return fail(Code::kInvalid, "a record ends in a key");
    const auto value_end = text.find('\0', key_end + 1);
    if (value_end == std::string_view::npos) {
      return fail(Code::kInvalid, "a record ends in a value");
    }
    const std::string_view key = text.substr(0, key_end);
    if (!take(key, std::string(text.substr(key_end + 1, value_end - key_end - 1)))) {
      return fail(Code::kInvalid, fmt::format("a record has a wrong '{}'", display_text(key, 40)));
    }
    text.remove_prefix(value_end + 1);
  }
  return {};
}

bool read_number(const std::string& text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

void write_spec(Writer& out, const JobSpec& spec) {
  out.add("name", spec.name).add_all("option", spec.options).add_all("argument", spec.command);
  out.add("workdir", spec.workdir).add("restart", to_string(spec.restart));
  for (const auto& [name, value] : spec.environment) out.add("variable", name + "=" + value);
  out.add_all("after", spec.after).add_all("after_success", spec.after_success);
  out.add_all("after_end", spec.after_end);
  if (spec.output != Output::kFile) out.add("output", to_string(spec.output));
  if (spec.tty) out.add("tty", "1");
  if (!spec.is_array()) return;
  out.add("array", to_string(spec.array)).add("at_once", spec.at_once);
  for (const std::vector<std::string>& command : spec.each) {
    out.add("item", "").add_all("word", command);
  }
}

bool take_spec(JobSpec& spec, std::string_view key, std::string& value) {
  if (key == "name")
    spec.name = std::move(value);
  else if (key == "option")
    spec.options.push_back(std::move(value));
  else if (key == "argument")
    spec.command.push_back(std::move(value));
  else if (key == "workdir")
    spec.workdir = std::move(value);
  else if (key == "after")
    spec.after.push_back(std::move(value));
  else if (key == "after_success")
    spec.after_success.push_back(std::move(value));
  else if (key == "after_end")
    spec.after_end.push_back(std::move(value));
  else if (key == "tty")
    spec.tty = value == "1";
  else if (key == "item")
    spec.each.emplace_back();
  else if (key == "word") {
    if (spec.each.empty()) return false;
    spec.each.back().push_back(std::move(value));
  } else if (key == "array") {
    auto array = Indices::parse(value);
    if (!array) return false;
    spec.array = std::move(*array);
  } else if (key == "at_once") {
    std::int64_t number = 0;
    if (!read_number(value, number) || !check_at_once(number)) return false;
    spec.at_once = static_cast<int>(number);
  } else if (key == "variable") {
    const auto equals = value.find('=');
    if (equals == std::string::npos) return false;
    spec.environment.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (key == "restart") {
    const auto policy = parse_restart_policy(value);
    if (!policy) return false;
    spec.restart = *policy;
  } else if (key == "output") {
    const auto output = parse_output(value);
    if (!output) return false;
    spec.output = *output;
  }
  return true;
}

std::int64_t count_of(WallTime time) { return time.time_since_epoch().count(); }

bool read_time(const std::string& text, WallTime& out) {
  std::int64_t count = 0;
  if (!read_number(text, count)) return false;
  out = WallTime(std::chrono::milliseconds(count));
  return true;
}

// "started ended reason code detail", times in milliseconds, "-" for a run that never began.
std::string text_of(const RunEnd& end) {
  return fmt::format("{} {} {} {} {}", end.started ? std::to_string(count_of(*end.started)) : "-",
                     count_of(end.ended), to_string(end.reason), end.code, end.detail);
}

bool read_end(std::string_view text, RunEnd& end) {
  std::string words[4];
  for (std::string& word : words) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return false;
    word = text.substr(0, space);
    text.remove_prefix(space + 1);
  }
  WallTime started;
  std::int64_t code = 0;
  const auto reason = parse_end_reason(words[2]);
  if (words[0] != "-" && !read_time(words[0], started)) return false;
  if (!read_time(words[1], end.ended) || !reason || !read_number(words[3], code)) return false;
  if (words[0] != "-") end.started = started;
  end.reason = *reason;
  end.code = static_cast<int>(code);
  end.detail = text;
  return true;
}

bool read_bytes(const std::string& text, std::optional<Bytes>& out) {
  std::int64_t count = 0;
  if (!read_number(text, count) || count < 0) return false;
  out = Bytes(static_cast<std::uint64_t>(count));
  return true;
}

std::int64_t count_of(Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); }

bool take_state(JobState& state, std::string_view key, std::string& value) {
  std::int64_t number = 0;
  if (key == "phase") {
    const auto phase = parse_phase(value);
    if (!phase) return false;
    state.phase = *phase;
  } else if (key == "failures") {
    if (!read_number(value, number)) return false;
    state.failures = static_cast<int>(number);
  } else if (key == "brief") {
    if (!read_number(value, number)) return false;
    state.brief = static_cast<int>(number);
  } else if (key == "running_since_ns") {
    if (!read_number(value, number)) return false;
    state.running_since = TimePoint(std::chrono::nanoseconds(number));
  } else if (key == "started_ms") {
    WallTime started;
    if (!read_time(value, started)) return false;
    state.started = started;
  } else if (key == "end_reason") {
    state.end_reason = parse_end_reason(value);
    return state.end_reason.has_value();
  } else if (key == "end_detail") {
    state.end_detail = std::move(value);
  } else if (key == "start_again") {
    state.start_again = value == "1";
  } else if (key == "retries_items") {
    state.retries_items = value == "1";
  } else if (key == "removed") {
    state.removed = value == "1";
  } else if (key == "asking") {
    state.asking = value == "1";
  } else if (key == "asked_ms") {
    WallTime asked;
    if (!read_time(value, asked)) return false;
    state.asked = asked;
  } else if (key == "keeps_place") {
    state.keeps_place = value == "1";
  } else if (key == "most_used") {
    return read_bytes(value, state.most_used);
  } else if (key == "end_most_used") {
    return !state.history.empty() && read_bytes(value, state.history.back().most_used);
  } else if (key == "end") {
    return read_end(value, state.history.emplace_back());
  }
  return true;
}

bool is_plain_name(std::string_view name) {
  const auto strange =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  return !name.empty() && name.size() <= 64 && strange == std::string_view::npos &&
         name.front() != '.' && name.front() != '-';
}

// A name that occurs twice; null: there is none.
const std::string* find_twice(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) return &name;
  }
  return nullptr;
}

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

Result<void> check_array(const JobSpec& spec) {
  if (!spec.is_array()) {
    if (spec.each.empty() && spec.at_once == 0) return {};
    return fail(Code::kInvalid, "only the items of an array run so many at once: give the array");
  }
  GPUROTA_TRY(check_at_once(spec.at_once));
  if (spec.restart == RestartPolicy::kAlways) {
    return fail(Code::kInvalid,
                "an item of an array that is always started again never ends: use --restart "
                "on-failure, or no");
  }
  if (spec.each.empty()) return {};
  if (!spec.command.empty()) {
    return fail(Code::kInvalid, "each item of this array has a command of its own: give no other");
  }
  if (spec.each.size() > kMostItems) {
    return fail(Code::kLimit, fmt::format("an array has at most {} commands, these are {}",
                                          kMostItems, spec.each.size()));
  }
  if (spec.array != Indices::up_to(spec.each.size())) {
    return fail(Code::kInvalid, "the indices of an array of commands are their numbers, from 1");
  }
  for (std::size_t i = 0; i < spec.each.size(); ++i) {
    if (!spec.each[i].empty() && !spec.each[i].front().empty()) continue;
    return fail(Code::kInvalid, fmt::format("command {} of the array is empty", i + 1));
  }
  return {};
}

}  // namespace

Result<void> check_spec(const JobSpec& spec) {
  if (!is_plain_name(spec.name)) {
    return fail(Code::kInvalid,
                fmt::format("'{}' is not a name for a job or filler: use at most 64 letters, "
                            "digits, '.', '_' and '-', and do not begin with '.' or '-'",
                            display_text(spec.name, 40)));
  }
  GPUROTA_TRY(check_array(spec));
  if (spec.each.empty() && (spec.command.empty() || spec.command.front().empty())) {
    return fail(Code::kInvalid, "a job needs a command");
  }
  if (spec.command.size() + spec.options.size() > kMaxArguments ||
      encode(spec).size() > kMaxSpecBytes) {
    return fail(
        Code::kLimit,
        fmt::format("the command and the variables are too long: {} words and {} KiB can be{}",
                    kMaxArguments, kMaxSpecBytes / 1024,
                    spec.each.empty() ? ""
                                      : ". Write the commands into a script that chooses one by "
                                        "GPUROTA_ARRAY_INDEX, and use --array"));
  }
  if (!spec.workdir.empty() && spec.workdir.front() != '/') {
    return fail(Code::kInvalid, "the working directory of a job is an absolute path");
  }
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value)) {
      return fail(Code::kInvalid,
                  fmt::format("'{}' is not a variable name", display_text(name, 40)));
    }
  }
  std::vector<const std::vector<std::string>*> all = {&spec.command, &spec.options, &spec.after,
                                                      &spec.after_success, &spec.after_end};
  for (const auto& command : spec.each) all.push_back(&command);
  for (const auto* words : all) {
    for (const std::string& word : *words) {
      if (has_nul(word)) return fail(Code::kInvalid, "a job cannot contain a NUL byte");
    }
  }
  for (const auto* names : {&spec.after_success, &spec.after_end}) {
    if (const std::string* const twice = find_twice(*names)) {
      return fail(Code::kInvalid, fmt::format("job {} names {} twice: name each job once",
                                              spec.name, display_text(*twice, 64)));
    }
  }
  if (spec.tty && spec.output == Output::kJournal) {
    return fail(Code::kInvalid,
                "the journal is not a terminal: leave out --tty, or --output journal");
  }
  for (const std::string& option : spec.options) {
    if (option != "--" && option.rfind("--runtime-dir", 0) != 0) continue;
    return fail(Code::kInvalid, fmt::format("'{}' is not a job option", display_text(option, 40)));
  }
  return {};
}

JobSpec item_spec(const JobSpec& spec, std::int64_t index) {
  JobSpec item = spec;
  if (!spec.each.empty()) item.command = spec.each.at(static_cast<std::size_t>(index) - 1);
  item.after.clear();
  item.after_success.clear();
  item.after_end.clear();
  item.array = {};
  item.each.clear();
  item.at_once = 0;
  // If several variables have the same name, the last one counts.
  item.environment.emplace_back("GPUROTA_ARRAY_INDEX", std::to_string(index));
  return item;
}

Bytes log_bound(const JobSpec& spec) {
  if (!spec.is_array()) return kLogBound;
  constexpr Bytes kLeast(std::uint64_t{64} << 10);
  constexpr Bytes kAll = mib(256);
  return std::clamp(Bytes(kAll.count() / spec.array.count()), kLeast, kLogBound);
}

Bytes logs_bound(const JobSpec& spec) {
  if (spec.output != Output::kFile) return Bytes();
  const std::size_t items = spec.is_array() ? spec.array.count() : 1;
  return Bytes(items * log_bound(spec).count());
}

std::string encode(const JobSpec& spec) {
  Writer out;
  write_spec(out, spec);
  return out.text();
}

Result<JobSpec> decode_spec(std::string_view text) {
  JobSpec spec;
  GPUROTA_TRY(read_pairs(text, [&spec](std::string_view key, std::string value) {
    return take_spec(spec, key, value);
  }));
  GPUROTA_TRY(check_spec(spec));
  return spec;
}

std::string encode(const JobState& state) {
  Writer out;
  out.add("phase", to_string(state.phase)).add("failures", state.failures);
  if (state.running_since) {
    out.add("running_since_ns", state.running_since->time_since_epoch().count());
  }
  if (state.started) out.add("started_ms", count_of(*state.started));
  if (state.end_reason) out.add("end_reason", to_string(*state.end_reason));
  out.add("end_detail", state.end_detail).add("start_again", state.start_again ? "1" : "0");
  if (state.brief > 0) out.add("brief", state.brief);
  if (state.asking) out.add("asking", "1");
  if (state.asked) out.add("asked_ms", count_of(*state.asked));
  if (state.keeps_place) out.add("keeps_place", "1");
  if (state.retries_items) out.add("retries_items", "1");
  if (state.removed) out.add("removed", "1");
  if (state.most_used) out.add("most_used", count_of(*state.most_used));
  for (const RunEnd& end : state.history) {
    out.add("end", text_of(end));
    if (end.most_used) out.add("end_most_used", count_of(*end.most_used));
  }
  return out.text();
}

Result<JobState> decode_state(std::string_view text) {
  JobState state;
  GPUROTA_TRY(read_pairs(text, [&state](std::string_view key, std::string value) {
    return take_state(state, key, value);
  }));
  return state;
}

std::string encode(const KeeperOrders& orders) {
  Writer out;
  out.add("uid", orders.uid).add("user", orders.user).add("gpurota", orders.gpurota);
  out.add("runtime_dir", orders.runtime_dir);
  out.add("log_bound", count_of(orders.log_bound));
  write_spec(out, orders.spec);
  return out.text();
}

Result<KeeperOrders> decode_orders(std::string_view text) {
  KeeperOrders orders;
  bool has_uid = false;
  GPUROTA_TRY(read_pairs(text, [&](std::string_view key, std::string value) {
    std::int64_t number = 0;
    if (key == "uid") {
      has_uid = read_number(value, number);
      orders.uid = static_cast<uid_t>(number);
      return has_uid;
    }
    if (key == "user") orders.user = value;
    if (key == "gpurota") orders.gpurota = value;
    if (key == "runtime_dir") orders.runtime_dir = value;
    if (key == "log_bound") {
      if (!read_number(value, number) || number < std::int64_t{4096}) return false;
      orders.log_bound = Bytes(static_cast<std::uint64_t>(number));
    }
    return take_spec(orders.spec, key, value);
  }));
  if (!has_uid) return fail(Code::kInvalid, "a job's orders do not say whose it is");
  GPUROTA_TRY(check_spec(orders.spec));
  return orders;
}

std::string encode(const KeeperReport& report) {
  Writer out;
  out.add("signalled", report.signalled ? "1" : "0").add("code", report.code);
  out.add("cannot_start", report.cannot_start).add("whole", "1");
  return out.text();
}

Result<KeeperReport> decode_report(std::string_view text) {
  KeeperReport report;
  bool whole = false;
  GPUROTA_TRY(read_pairs(text, [&](std::string_view key, const std::string& value) {
    std::int64_t number = 0;
    if (key == "signalled") report.signalled = value == "1";
    if (key == "cannot_start") report.cannot_start = value;
    if (key == "whole") whole = true;
    if (key != "code") return true;
    if (!read_number(value, number)) return false;
    report.code = static_cast<int>(number);
    return true;
  }));
  if (!whole) return fail(Code::kInvalid, "a keeper's report is not whole");
  return report;
}

}  // namespace gpurota::jobs
