// One setting: how its value is read from a file, and how it is shown. Each row of the table in
// settings.cpp calls one function of this header. Pure. Only for this module.
#pragma once

#include "base/bytes.h"
#include "config/config.h"
#include "config/document.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::config {

// Reports a mistake in a value; `below` is appended to the key of the setting.
using Complain = std::function<void(const Value& value, std::string below, std::string what)>;

struct Setting {
  // Reads the value, or reports what is wrong with it.
  std::function<void(const Value&, const Complain&)> take;
  // The value as in a file, without quotes. Empty: not set. For a list of tables: one text for each
  // table.
  std::function<std::vector<std::string>()> texts;
  bool is_list = false;        // a list of tables
  bool takes_restart = false;  // a reload does not change its value
};
// By key; the key of a setting in a [table] begins with the table's name and a dot.
using Settings = std::map<std::string, Setting, std::less<>>;

// Marks a setting that takes effect only after a restart.
Setting restart(Setting setting);

// Kinds of values. `into` must outlive the setting.
Setting bytes(Bytes& into);
Setting bytes(std::optional<Bytes>& into);    // optional
Setting size(SizeSpec& into);                 // "8G" or "50%"
Setting size(std::optional<SizeSpec>& into);  // optional
Setting duration(std::chrono::milliseconds& into, std::chrono::milliseconds least,
                 std::chrono::milliseconds most = std::chrono::hours(24));
// At most a year.
Setting long_duration(std::chrono::seconds& into,
                      std::chrono::seconds least = std::chrono::seconds(1));
Setting count(int& into, int least, int most);
Setting flag(bool& into);
Setting text(std::string& into);
Setting names(std::vector<std::string>& into);
Setting compute_capability(std::string& into);      // "8.0"
Setting gpu_names(std::vector<std::string>& into);  // indices or UUIDs
Setting privacy(Privacy& into);
Setting enforcement(Enforcement& into);
Setting action(WatchAction& into);
Setting expired(Expired& into);
Setting open_ended(Bookings::OpenEnded& into);
Setting when_full(Automatic::WhenFull& into);
Setting soft_policy(SoftLimit::Policy& into);
Setting lowered_policy(LoweredLimit::Policy& into);
Setting rules(std::vector<WatchRule>& into);
Setting ignores(std::vector<WatchIgnore>& into);
Setting turns_capacity(Turns::Gpu& into);
Setting turns_mode(Turns::Gpu& into);
Setting turns_quantum(Turns::Gpu& into);

// For [notify].
Setting program(std::vector<std::string>& into);  // its absolute path, and its arguments
Setting absolute_path(std::string& into);
Setting mail_domain(std::string& into);
Setting account(std::string& into);     // an account's name
Setting secret_url(std::string& into);  // never shown
Setting secret_headers(std::vector<std::string>& into);
Setting events(std::vector<NoticeKind>& into);
Setting times(std::vector<std::chrono::milliseconds>& into);  // longest first

// For [limits] and its tables: `name` is one of kLimitNames.
Setting limit(UserLimits& into, std::string_view name);

// Used by several files, for messages.
std::string text_of(Bytes amount);
std::string text_of(const SizeSpec& size);
std::string text_of(std::chrono::milliseconds time);
// Return "", or what is wrong.
std::string take_bytes(const Value& value, Bytes& into);
std::string take_long_duration(const Value& value, std::chrono::seconds& into,
                               std::chrono::seconds least = std::chrono::seconds(1));
std::string take_count(const Value& value, int least, int most, int& into);
std::string take_flag(const Value& value, bool& into);
std::string take_names(const Value& value, std::vector<std::string>& into);
std::string names_text(const std::vector<std::string>& names);
std::string take_action(const Value& value, WatchAction& into);
const char* action_text(WatchAction action);

// For one value: `take` returns "", or what is wrong.
Setting simple(std::function<std::string(const Value&)> take, std::function<std::string()> text);
// For one optional value: `text` returns nothing if it is not set.
Setting optional_setting(std::function<std::string(const Value&)> take,
                         std::function<std::optional<std::string>()> text);

// "no such setting; did you mean limits.gpus?": `meant` is the suggestion; empty: none.
std::string no_such(std::string_view what, const std::string& meant);

}  // namespace gpurota::config
