// The text of a configuration, and the differences between two, as `gpurota reload`, `config show`
// and `config diff` print them. Pure.
#pragma once

#include "config/config.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::config {

struct ShownSetting {
  std::string key;                   // "limits.user.alice.memory"
  std::string value;                 // as in a file, without quotes: "16G"
  std::optional<std::string> usual;  // its default; nothing: it exists only if set
  bool takes_restart = false;

  bool operator==(const ShownSetting&) const = default;
};
// Sorted by key.
std::vector<ShownSetting> shown_settings(const Config& config);

struct Change {
  std::string key;
  std::optional<std::string> before;  // nothing: not set
  std::optional<std::string> after;
  bool takes_restart = false;

  bool operator==(const Change&) const = default;
};
std::vector<Change> changes(const std::vector<ShownSetting>& before,
                            const std::vector<ShownSetting>& after);
// "limits.gpus: 2 → 4", "group: a → b: takes effect at the next restart". Safe for a terminal.
std::string to_string(const Change& change);

// Settings that take a restart keep their current values.
void keep_until_restart(Config& next, const Config& current);

// Whether the setting names users, so that other users need not see it.
bool names_users(std::string_view key);

}  // namespace gpurota::config
