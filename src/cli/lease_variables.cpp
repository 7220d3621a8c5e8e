#include "cli/lease_variables.h"

#include "abi/env.h"

#include <algorithm>

namespace gpurota::cli {
namespace {

constexpr std::string_view kNames[] = {GPUROTA_LEASE_VARIABLES};
constexpr std::string_view kPreloadName = "LD_PRELOAD";

template <class Is>
bool is_with_prefix(std::string_view name, Is is) {
  return std::any_of(kContainerPrefixes.begin(), kContainerPrefixes.end(),
                     [&](std::string_view prefix) {
                       return name.starts_with(prefix) && is(name.substr(prefix.size()));
                     });
}

}  // namespace

std::vector<std::string> lease_variables() { return {std::begin(kNames), std::end(kNames)}; }

bool belongs_to_lease(std::string_view name) {
  return is_with_prefix(name, [](std::string_view plain) {
    return std::find(std::begin(kNames), std::end(kNames), plain) != std::end(kNames);
  });
}

bool is_preload(std::string_view name) {
  return is_with_prefix(name, [](std::string_view plain) { return plain == kPreloadName; });
}

std::optional<std::string> without_library(std::string_view preload) {
  std::string kept;
  for (std::size_t at = 0; at < preload.size();) {
    const std::size_t end = std::min(preload.find_first_of(": ", at), preload.size());
    const std::string_view entry = preload.substr(at, end - at);
    at = end + 1;
    const std::string_view file = entry.substr(entry.rfind('/') + 1);
    if (entry.empty() || file == GPUROTA_LIBRARY_NAME) continue;
    kept += (kept.empty() ? "" : ":") + std::string(entry);
  }
  return kept.empty() ? std::nullopt : std::optional(kept);
}

std::optional<std::string> find_variable(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

}  // namespace gpurota::cli
