// One setting: how its value is taken over from a file, and how it is shown. A row of the table in
// settings.cpp is made of one function of this header. Pure. Inside the module only.
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

// Reports a mistake in a value; `below` is what to add to the key of the setting.
using Complain = std::function<void(const Value& value, std::string below, std::string what)>;

struct Setting {
  // Takes the value over, or says what is wrong with it.
  std::function<void(const Value&, const Complain&)> take;
  // As a file would say it, without quotes. Empty: not set. Several: of a list of tables, one of
  // each.
  std::function<std::vector<std::string>()> texts;
  bool is_list = false;        // of tables
  bool takes_restart = false;  // its value is kept until then
};
// By key; those in a [table] have its name and a dot in front.
using Settings = std::map<std::string, Setting, std::less<>>;

// One that is in effect after a restart only.
Setting restart(Setting setting);

// Kinds of values. `into` outlives the setting.
Setting bytes(Bytes& into);
Setting bytes(std::optional<Bytes>& into);    // that may be left out
Setting size(SizeSpec& into);                 // "8G" or "50%"
Setting size(std::optional<SizeSpec>& into);  // that may be left out
Setting duration(std::chrono::milliseconds& into, std::chrono::milliseconds least,
                 std::chrono::milliseconds most = std::chrono::hours(24));
// Up to a year.
Setting long_duration(std::chrono::seconds& into,
                      std::chrono::seconds least = std::chrono::seconds(1));
Setting count(int& into, int least, int most);
Setting flag(bool& into);
Setting text(std::string& into);
Setting names(std::vector<std::string>& into);
Setting compute_capability(std::string& into);      // "8.0"
Setting gpu_names(std::vector<std::string>& into);  // indices or UUIDs
Setting privacy(Privacy& into);
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

// Of [notify].
Setting program(std::vector<std::string>& into);  // by its absolute path, with its arguments
Setting absolute_path(std::string& into);
Setting mail_domain(std::string& into);
Setting account(std::string& into);     // the name of one
Setting secret_url(std::string& into);  // what it is is never shown
Setting secret_headers(std::vector<std::string>& into);
Setting events(std::vector<NoticeKind>& into);
Setting times(std::vector<std::chrono::milliseconds>& into);  // the longest first

// Of [limits] and its tables: `name` is one of kLimitNames.
Setting limit(UserLimits& into, std::string_view name);

// Of several files, for messages.
std::string text_of(Bytes amount);
std::string text_of(const SizeSpec& size);
std::string text_of(std::chrono::milliseconds time);
// "", or what is wrong.
std::string take_bytes(const Value& value, Bytes& into);
std::string take_long_duration(const Value& value, std::chrono::seconds& into,
                               std::chrono::seconds least = std::chrono::seconds(1));
std::string take_count(const Value& value, int least, int most, int& into);
std::string take_names(const Value& value, std::vector<std::string>& into);
std::string names_text(const std::vector<std::string>& names);
std::string take_action(const Value& value, WatchAction& into);
const char* action_text(WatchAction action);

// Of one value: `take` returns "", or what is wrong.
Setting simple(std::function<std::string(const Value&)> take, std::function<std::string()> text);
// The same of one that may be left out: `text` gives nothing then.
Setting optional_setting(std::function<std::string(const Value&)> take,
                         std::function<std::optional<std::string>()> text);

// "no such setting; did you mean limits.gpus?": `name` is what was meant; empty: nothing is near.
std::string no_such(std::string_view what, const std::string& meant);

}  // namespace gpurota::config
