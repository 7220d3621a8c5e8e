#include "kube/options.h"

#include "base/text.h"
#include "proto/service.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::kube {
namespace {

constexpr std::string_view kBefore = R"(Usage: gpurota-device-plugin [OPTION]...

Offers the GPUs of this node to Kubernetes: whole, by their memory, and in turns. It asks )"
                                     R"(gpurotad for the lease of
each container before that starts, and ends it when the container is gone. It runs in the )"
                                     R"(foreground, as root, and
logs to stderr.

)";

std::vector<Option> own_rows(Options& options, bool& events) {
  return {{'\0', "--gpu-resource", &options.names[Resource::kGpu], "NAME",
           "what a whole GPU is called (gpurota.dev/gpu)"},
          {'\0', "--memory-resource", &options.names[Resource::kMemory], "NAME",
           "what a unit of the memory of a GPU is called (gpurota.dev/memory)"},
          {'\0', "--turn-resource", &options.names[Resource::kTurn], "NAME",
           "what nearly a whole GPU, in turns, is called (gpurota.dev/turn)\n"
           "An empty NAME: that is not offered"},
          {'\0', "--turns",
           take_count("--turns", 1, 64, [&options](int count) { options.rules.turns = count; }),
           "N", "containers that take turns on a GPU, at most (10)"},
          {'\0', "--turn-memory",
           [&options](const std::string& value) -> Result<void> {
             GPUROTA_ASSIGN_OR_RETURN(options.rules.turn_memory, parse_bytes(value));
             return {};
           },
           "SIZE", "memory of each while it has its turn (all that the memory units leave)"},
          {'\0', "--state-dir", &options.state_dir, "DIR",
           "state that outlives a restart (/var/lib/gpurota-kubernetes)"},
          {'\0', "--events", &events, "",
           "write events of pods that wait for a turn, hold too much, or have lost their\n"
           "lease. For these:"}};
}

std::vector<Option> all_rows(Options& options, ApiOptions& api, bool& events) {
  std::vector<Option> rows = plugin_rows(options, options.rules.unit);
  for (auto more : {own_rows(options, events), api_rows(api)}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

// Checks the form of an extended resource's name in Kubernetes: DOMAIN/NAME.
Result<void> check_name(std::string_view name) {
  constexpr std::string_view kSigns =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
  constexpr std::size_t kLongest = 253 + 1 + 63;
  const std::size_t at = name.find('/');
  const bool good = at != std::string_view::npos && at > 0 && at + 1 < name.size() &&
                    name.find('/', at + 1) == std::string_view::npos && name.size() <= kLongest &&
                    name.find_first_not_of(kSigns) == std::string_view::npos;
  if (name.empty() || good) return {};
  return fail(Code::kInvalid,
              fmt::format("'{}' is not the name of a resource: write DOMAIN/NAME, as "
                          "gpurota.dev/gpu",
                          display_text(name, 60)));
}

Result<void> check_names(Options& options) {
  std::set<std::string> known;
  for (auto at = options.names.begin(); at != options.names.end();) {
    GPUROTA_TRY(check_name(at->second));
    if (!at->second.empty() && !known.insert(at->second).second) {
      return fail(Code::kInvalid, fmt::format("two resources are called {}", at->second));
    }
    at = at->second.empty() ? options.names.erase(at) : std::next(at);
  }
  if (options.names.empty())
    return fail(Code::kInvalid, "no resource has a name: nothing is offered");
  return {};
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& words) {
  Options options;
  ApiOptions api;
  bool events = false;
  const Program program{"gpurota-device-plugin", proto::version(), kBefore,
                        "\nSee gpurota-device-plugin(8).\n"};
  GPUROTA_ASSIGN_OR_RETURN(options.print,
                           read_program_options(program, all_rows(options, api, events), words));
  if (!options.print.empty()) return options;
  GPUROTA_TRY(check_names(options));
  if (!events && api != ApiOptions()) {
    return fail(
        Code::kInvalid,
        "--node-name, --api-server, --token-file and --ca-file are for --events: give that too");
  }
  if (!events) return options;
  GPUROTA_TRY(complete(api));
  options.api = std::move(api);
  return options;
}

}  // namespace gpurota::kube
