#include "config/changes.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::config {
namespace {

constexpr std::size_t kLongestValue = 120;

std::string side(const std::optional<std::string>& value) {
  return value ? display_text(*value, kLongestValue) : "not set";
}

}  // namespace

std::vector<Change> changes(const std::vector<ShownSetting>& before,
                            const std::vector<ShownSetting>& after) {
  std::vector<Change> changes;
  auto old = before.begin();
  auto now = after.begin();
  while (old != before.end() || now != after.end()) {
    if (now == after.end() || (old != before.end() && old->key < now->key)) {
      changes.push_back({old->key, old->value, std::nullopt, old->takes_restart});
      ++old;
    } else if (old == before.end() || now->key < old->key) {
      changes.push_back({now->key, std::nullopt, now->value, now->takes_restart});
      ++now;
    } else {
      if (old->value != now->value) {
        changes.push_back({now->key, old->value, now->value, now->takes_restart});
      }
      ++old;
      ++now;
    }
  }
  return changes;
}

std::string to_string(const Change& change) {
  return fmt::format("{}: {} → {}{}", display_text(change.key, 120), side(change.before),
                     side(change.after),
                     change.takes_restart ? ": takes effect at the next restart" : "");
}

bool names_users(std::string_view key) {
  return key.starts_with("limits.user.") || key.starts_with("watch.rule[");
}

}  // namespace gpurota::config
