// [[watch.rule]] and [[watch.ignore]]: lists of tables, each with keys of its own.
#include "base/nearest.h"
#include "config/setting.h"

#include <fmt/format.h>

#include <array>

namespace gpurota::config {
namespace {

using Kind = Value::Kind;

constexpr std::array<std::string_view, 5> kFindings = {"unreserved_use", "foreign_use",
                                                       "over_limit", "unused", "not_limited"};

// Reads one table. Complains about a member, or, with an empty key, about the table.
template <class Entry>
using TakeEntry = void (*)(const Value& table, Entry& entry, const Complain& complain);
template <class Entry>
using EntryText = std::string (*)(const Entry& entry);

template <class Entry>
Setting entries(std::vector<Entry>& into, TakeEntry<Entry> take, EntryText<Entry> text) {
  Setting setting;
  setting.is_list = true;
  setting.take = [&into, take](const Value& value, const Complain& complain) {
    into.clear();
    if (!value.is(Kind::kList)) {
      return complain(value, {}, "write it as a list of tables, with [[two brackets]]");
    }
    for (std::size_t i = 0; i < value.list.size(); ++i) {
      const Value& each = value.list[i];
      const std::string number = fmt::format("[{}]", i + 1);
      if (!each.is(Kind::kTable)) {
        complain(each, number, quoted(each) + " is not a table: write [[two brackets]]");
        continue;
      }
      take(each, into.emplace_back(), [&](const Value& at, const std::string& key, auto what) {
        complain(at, key.empty() ? number : number + "." + key, std::move(what));
      });
    }
  };
  setting.texts = [&into, text] {
    std::vector<std::string> texts;
    for (const Entry& entry : into) texts.push_back(text(entry));
    return texts;
  };
  return setting;
}

std::string take_finding(const Value& value, std::string& into) {
  std::vector<std::string> known;
  for (const std::string_view finding : kFindings) {
    if (value.is(Kind::kText) && value.text == finding) {
      into = finding;
      return {};
    }
    known.emplace_back(finding);
  }
  const std::string meant = nearest_name(value.text, known);
  return fmt::format(
      "{} is not a finding: write unreserved_use, foreign_use, over_limit, unused or "
      "not_limited{}",
      quoted(value), meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

void take_rule(const Value& table, WatchRule& rule, const Complain& complain) {
  bool has_action = false;
  for (const auto& [key, value] : table.table) {
    std::string what;
    if (key == "finding") {
      what = take_finding(value, rule.finding);
    } else if (key == "users") {
      what = take_names(value, rule.users);
    } else if (key == "groups") {
      what = take_names(value, rule.groups);
    } else if (key == "action") {
      has_action = true;
      what = take_action(value, rule.action);
    } else {
      what = no_such("setting", nearest_name(key, {"finding", "users", "groups", "action"}));
    }
    if (!what.empty()) complain(value, key, std::move(what));
  }
  if (!has_action) {
    complain(table, "action", "it is missing: write \"report\", \"notify\" or \"stop\"");
  }
  if (rule.users.empty() && rule.groups.empty()) {
    complain(table, {}, "whom is it about? Name users or groups");
  }
}

std::string rule_text(const WatchRule& rule) {
  std::string text = rule.finding.empty() ? "all findings" : rule.finding;
  if (!rule.users.empty()) text += " of users " + names_text(rule.users);
  if (!rule.groups.empty()) text += " of groups " + names_text(rule.groups);
  return fmt::format("{}: {}", text, action_text(rule.action));
}

void take_ignore(const Value& table, WatchIgnore& ignore, const Complain& complain) {
  for (const auto& [key, value] : table.table) {
    if (key == "uid") {
      if (value.is(Kind::kNumber) && value.number >= 0 && value.number <= 0xfffffffe) {
        ignore.uid = static_cast<uid_t>(value.number);
      } else {
        complain(value, key, quoted(value) + " is not a uid: write the number of a user");
      }
    } else if (key == "executable") {
      ignore.executable = value.text;
      if (!ignore.executable.starts_with("/")) {
        complain(value, key, quoted(value) + " is not a program: write an absolute path");
      }
    } else {
      complain(value, key, no_such("setting", nearest_name(key, {"uid", "executable"})));
    }
  }
  if (table.table.empty()) complain(table, {}, "give uid, executable or both");
}

std::string ignore_text(const WatchIgnore& ignore) {
  std::string text;
  if (ignore.uid) text = fmt::format("uid {}", *ignore.uid);
  if (!ignore.executable.empty()) {
    text += fmt::format("{}executable {}", text.empty() ? "" : ", ", ignore.executable);
  }
  return text;
}

}  // namespace

Setting rules(std::vector<WatchRule>& into) { return entries(into, take_rule, rule_text); }

Setting ignores(std::vector<WatchIgnore>& into) { return entries(into, take_ignore, ignore_text); }

}  // namespace gpurota::config
