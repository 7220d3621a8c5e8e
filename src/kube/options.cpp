#include "kube/options.h"

#include "base/long_options.h"
#include "base/text.h"
#include "kube/count_option.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::kube {

const char* const kUsage =
    R"(Usage: gpurota-device-plugin [OPTION]...

Offers the GPUs of this node to Kubernetes: whole, by their memory, and in turns. It asks gpurotad for the lease of
each container before that starts, and ends it when the container is gone. It runs in the foreground, as root, and
logs to stderr.

  --gpu-resource NAME     what a whole GPU is called                        (gpurota.dev/gpu)
  --memory-resource NAME  what a unit of the memory of a GPU is called      (gpurota.dev/memory)
  --turn-resource NAME    what nearly a whole GPU, in turns, is called      (gpurota.dev/turn)
                          An empty NAME: that is not offered
  --memory-unit SIZE      the memory of one unit                            (1GiB)
  --turns N               containers that take turns on a GPU, at most      (10)
  --turn-memory SIZE      what each of them may have while it has its turn  (all that --memory leaves)
  --gpus-by GIVER         how containers get their GPUs: files (device files and the driver's libraries,
                          mounted one by one), runtime (NVIDIA's container runtime), cdi (NVIDIA's CDI
                          description)                                      (files)
  --kubelet-dir DIR       kubelet's directory                               (/var/lib/kubelet)
  --state-dir DIR         state that outlives a restart                     (/var/lib/gpurota-kubernetes)
  --runtime-dir DIR       the gpurotad whose sockets are there              (/run/gpurota)
  --host-root DIR         where this machine's files are, in a container    (/)
  --events                write events of pods that wait for a turn, hold too much, or have lost their lease
  --node-name NAME        for events: what Kubernetes calls this node       ($NODE_NAME; else the host's name)
  --api-server URL        for events: where the API server is               (that of the cluster whose pod this is)
  --token-file FILE       bearer token for the API server, read again before
                          each call                                         (that of the pod)
  --ca-file FILE          CA certificates for the API server                (that of the pod)
  --interval MS           between two queries of gpurotad and kubelet       (2000)
  --log-level LEVEL       debug, info, warning or error                     (info)
  --help, --version

See gpurota-device-plugin(8).
)";

namespace {

enum {
  kGpuName = 256,
  kMemoryName,
  kTurnName,
  kUnit,
  kTurns,
  kTurnMemory,
  kGiver,
  kKubeletDir,
  kStateDir,
  kRuntimeDir,
  kHostRoot,
  kEvents,
  kInterval,
  kLogLevel
};

// As Kubernetes names an extended resource: DOMAIN/NAME.
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

std::string* find_text(Options& options, int option) {
  switch (option) {
    case kGpuName:
      return &options.names[Resource::kGpu];
    case kMemoryName:
      return &options.names[Resource::kMemory];
    case kTurnName:
      return &options.names[Resource::kTurn];
    case kKubeletDir:
      return &options.kubelet_dir;
    case kStateDir:
      return &options.state_dir;
    case kRuntimeDir:
      return &options.runtime_dir.emplace();
    case kHostRoot:
      return &options.host_root;
    default:
      return nullptr;
  }
}

Result<void> take(Options& options, int option, const char* value) {
  switch (option) {
    case 'h':
      options.help = true;
      return {};
    case 'V':
      options.version = true;
      return {};
    case kUnit: {
      GPUROTA_ASSIGN_OR_RETURN(options.rules.unit, parse_memory_unit(value));
      return {};
    }
    case kTurns: {
      GPUROTA_ASSIGN_OR_RETURN(options.rules.turns, parse_count("--turns", value, 1, 64));
      return {};
    }
    case kTurnMemory: {
      GPUROTA_ASSIGN_OR_RETURN(options.rules.turn_memory, parse_bytes(value));
      return {};
    }
    case kGiver: {
      GPUROTA_ASSIGN_OR_RETURN(options.giver, parse_gpu_giver(value));
      return {};
    }
    case kInterval: {
      GPUROTA_ASSIGN_OR_RETURN(const int interval, parse_count("--interval", value, 50, 60000));
      options.interval = std::chrono::milliseconds(interval);
      return {};
    }
    case kLogLevel: {
      GPUROTA_ASSIGN_OR_RETURN(options.log_level, log::parse_level(value));
      return {};
    }
    default:
      return fail(Code::kInternal, "an option that nobody reads");
  }
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

Result<Options> parse_options(int argc, char* const* argv) {
  const auto known = with_api_options({{"gpu-resource", required_argument, nullptr, kGpuName},
                                       {"memory-resource", required_argument, nullptr, kMemoryName},
                                       {"turn-resource", required_argument, nullptr, kTurnName},
                                       {"memory-unit", required_argument, nullptr, kUnit},
                                       {"turns", required_argument, nullptr, kTurns},
                                       {"turn-memory", required_argument, nullptr, kTurnMemory},
                                       {"gpus-by", required_argument, nullptr, kGiver},
                                       {"kubelet-dir", required_argument, nullptr, kKubeletDir},
                                       {"state-dir", required_argument, nullptr, kStateDir},
                                       {"runtime-dir", required_argument, nullptr, kRuntimeDir},
                                       {"host-root", required_argument, nullptr, kHostRoot},
                                       {"events", no_argument, nullptr, kEvents},
                                       {"interval", required_argument, nullptr, kInterval},
                                       {"log-level", required_argument, nullptr, kLogLevel},
                                       {"help", no_argument, nullptr, 'h'},
                                       {"version", no_argument, nullptr, 'V'}});
  Options options;
  ApiOptions api;
  bool events = false;
  GPUROTA_TRY(read_long_options(argc, argv, known.data(), "gpurota-device-plugin",
                                [&](int option, const char* value) -> Result<void> {
                                  std::string* text = find_text(options, option);
                                  if (!text) text = find_text(api, option);
                                  if (text) {
                                    *text = value;
                                    return {};
                                  }
                                  if (option != kEvents) return take(options, option, value);
                                  events = true;
                                  return {};
                                }));
  if (options.help || options.version) return options;
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
