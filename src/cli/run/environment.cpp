#include "cli/run/environment.h"

#include "abi/env.h"
#include "base/preload.h"
#include "base/text.h"
#include "cli/lease_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace gpurota::cli {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD";
constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";

std::string_view entry_name(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::optional<std::string> find(const std::vector<std::string>& variables, std::string_view name) {
  for (const std::string& entry : variables) {
    if (entry_name(entry) == name && entry.size() > name.size())
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

void set(std::vector<std::string>& variables, std::string_view name, std::string_view value) {
  std::erase_if(variables, [&](const std::string& entry) { return entry_name(entry) == name; });
  variables.push_back(fmt::format("{}={}", name, value));
}

// The inherited variables: in `taken` those that belong to a lease, in `kept` the others.
struct Inherited {
  std::vector<std::string> kept, taken;
};

Inherited split(const char* const* inherited) {
  Inherited out;
  // If the shell is not in a lease, a preloaded libgpurota is that of a site with automatic leases,
  // and stays.
  const bool in_lease = find_variable(inherited, GPUROTA_ENV_LEASE).has_value();
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
    const std::string_view entry = *inherited;
    const std::string_view name = entry_name(entry);
    if (name.size() < entry.size() && belongs_to_lease(name)) {
      out.taken.emplace_back(entry);
      continue;
    }
    const bool container = is_preload(name) && name != kPreload;
    if (name.size() < entry.size() && is_preload(name) && (in_lease || container)) {
      const auto rest = without_library(entry.substr(name.size() + 1));
      if (rest) out.kept.push_back(fmt::format("{}={}", name, *rest));
      continue;
    }
    out.kept.emplace_back(entry);
  }
  return out;
}

// Whether a value of CUDA_VISIBLE_DEVICES names exactly these GPUs, in this order.
bool names_gpus(std::string_view value, const std::vector<proto::LeaseGpu>& gpus) {
  std::size_t at = 0;
  for (const proto::LeaseGpu& gpu : gpus) {
    if (at > value.size()) return false;
    const std::size_t end = std::min(value.find(',', at), value.size());
    const std::string word(value.substr(at, end - at));
    const bool by_uuid = word.size() > 4 && gpu.uuid.value.starts_with(word);
    if (!by_uuid && word != std::to_string(gpu.index)) return false;
    at = end + 1;
  }
  return at == value.size() + 1;
}

// Whether an LD_PRELOAD list (separated by colons or spaces) contains `library`.
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
                                       const proto::Acquire::Reply& reply,
                                       const std::optional<std::string>& outer) {
  Inherited before = split(inherited);
  CommandEnvironment out{std::move(before.kept), {}};
  for (const proto::Variable& variable : reply.environment) {
    const auto was = find(before.taken, variable.name);
    set(out.variables, variable.name, variable.value);
    // The token is a secret.
    if (!was || *was == variable.value || variable.name == GPUROTA_ENV_TOKEN) continue;
    out.remarks.push_back(fmt::format("{} was '{}', is now '{}'", display_text(variable.name, 60),
                                      display_text(*was, 80), display_text(variable.value, 80)));
    const bool of_lease =
        outer ? *was == *outer : find(before.taken, GPUROTA_ENV_LEASE).has_value();
    if (variable.name != kVisible || of_lease || names_gpus(*was, reply.lease.gpus)) continue;
    out.chosen_gpus = fmt::format(
        "CUDA_VISIBLE_DEVICES was '{}' and is '{}' for the command: its lease has other GPUs than "
        "you had chosen; choose them with --gpu-ids",
        display_text(*was, 80), display_text(variable.value, 80));
  }
  if (reply.preload) {
    const auto was = find(out.variables, kPreload);
    const bool there = was && lists(*was, *reply.preload);
    if (!there) {
      const bool more = was && !was->empty();
      set(out.variables, kPreload, *reply.preload + (more ? ":" + *was : ""));
      if (more) {
        out.remarks.push_back(fmt::format("{} is put before the existing LD_PRELOAD ('{}')",
                                          display_text(*reply.preload, 120),
                                          display_text(*was, 120)));
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
