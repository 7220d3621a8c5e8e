#include "cli/run/environment.h"

#include "abi/env.h"
#include "base/preload.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace gpurota::cli {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD";

bool names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

// Sets it, and gives the value it had.
std::optional<std::string> set(std::vector<std::string>& variables, std::string_view name,
                               std::string_view value) {
  std::optional<std::string> before;
  const auto same = [&](const std::string& entry) {
    if (!names(entry, name)) return false;
    if (!before) before = entry.substr(name.size() + 1);
    return true;
  };
  variables.erase(std::remove_if(variables.begin(), variables.end(), same), variables.end());
  variables.push_back(fmt::format("{}={}", name, value));
  return before;
}

// Whether a list as the dynamic linker reads it (colons or spaces) has `library`.
bool lists(std::string_view list, std::string_view library) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find_first_of(": ", at), list.size());
    if (list.substr(at, end - at) == library) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

CommandEnvironment command_environment(const char* const* inherited,
                                       const proto::Acquire::Reply& reply) {
  CommandEnvironment out;
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
    // Of a lease around this one.
    if (!names(*inherited, GPUROTA_ENV_WHOLE)) out.variables.emplace_back(*inherited);
  }
  for (const proto::Variable& variable : reply.environment) {
    const auto before = set(out.variables, variable.name, variable.value);
    if (before && *before != variable.value) {
      out.remarks.push_back(fmt::format("{} was '{}', is now '{}'", display_text(variable.name, 60),
                                        display_text(*before, 80),
                                        display_text(variable.value, 80)));
    }
  }
  if (reply.preload) {
    const auto before = set(out.variables, kPreload, *reply.preload);
    if (before && !before->empty()) {
      const bool there = lists(*before, *reply.preload);
      set(out.variables, kPreload, there ? *before : *reply.preload + ":" + *before);
      if (!there) {
        out.remarks.push_back(fmt::format("{} is put before the existing LD_PRELOAD ('{}')",
                                          display_text(*reply.preload, 120),
                                          display_text(*before, 120)));
      }
    }
  }
  return out;
}

Result<void> check_preload(const std::string& library) {
  const std::string problem = preload_problem(library);
  if (problem.empty()) return {};
  return fail(
      Code::kUnavailable,
      fmt::format("the limit could not be enforced: your programs cannot load {}: {}. Install "
                  "gpurota where everybody may read it, such as /usr/local; in a "
                  "container, mount it",
                  display_text(library, 200), problem));
}

}  // namespace gpurota::cli
