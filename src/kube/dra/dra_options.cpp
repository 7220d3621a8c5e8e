#include "kube/dra/dra_options.h"

#include "base/long_options.h"
#include "kube/count_option.h"

namespace gpurota::kube {

const char* const kDraUsage =
    R"(Usage: gpurota-dra [OPTION]...

The driver of gpurota for dynamic resources of Kubernetes (1.34 or newer): publishes the GPUs of this node and has
gpurotad make the lease of each claim before its pod starts. It runs in the foreground, as root, and logs to stderr.

  --node-name NAME        what Kubernetes calls this node                   ($NODE_NAME; else the host's name)
  --api-server URL        where the API server is                           (that of the cluster whose pod this is)
  --token-file FILE       bearer token for the API server, read again before
                          each call                                         (that of the pod)
  --ca-file FILE          CA certificates for the API server                (that of the pod)
  --memory-unit SIZE      the memory of GPUs is counted in these            (1GiB)
  --mixed                 parts of a GPU's memory and turns on it may be claimed at the same time
  --gpus-by GIVER         how containers get their GPUs: files (device files and the driver's libraries,
                          mounted one by one), runtime (NVIDIA's container runtime), cdi (NVIDIA's CDI
                          description)                                      (files)
  --kubelet-dir DIR       kubelet's directory                               (/var/lib/kubelet)
  --cdi-dir DIR           where container engines look for devices          (/var/run/cdi)
  --state-dir DIR         state that outlives a restart                     (/var/lib/gpurota-dra)
  --runtime-dir DIR       the gpurotad whose sockets are there              (/run/gpurota)
  --host-root DIR         where this machine's files are, in a container    (/)
  --interval MS           between two queries of gpurotad                   (2000)
  --review SECONDS        between two checks of the published GPUs          (60)
  --log-level LEVEL       debug, info, warning or error                     (info)
  --help, --version

See gpurota-dra(8).
)";

namespace {

enum {
  kMemoryUnit = 256,
  kMixed,
  kGpusBy,
  kKubelet,
  kCdi,
  kState,
  kRuntime,
  kHost,
  kLookInterval,
  kReview,
  kLevel
};

std::string* find_member(DraOptions& options, int option) {
  switch (option) {
    case kKubelet:
      return &options.kubelet_dir;
    case kCdi:
      return &options.cdi_dir;
    case kState:
      return &options.state_dir;
    case kRuntime:
      return &options.runtime_dir.emplace();
    case kHost:
      return &options.host_root;
    default:
      return find_text(options.api, option);
  }
}

Result<void> take_dra(DraOptions& options, int option, const char* value) {
  switch (option) {
    case 'h':
      options.help = true;
      return {};
    case 'V':
      options.version = true;
      return {};
    case kMemoryUnit: {
      GPUROTA_ASSIGN_OR_RETURN(options.rules.unit, parse_memory_unit(value));
      return {};
    }
    case kMixed:
      options.rules.mixed = true;
      return {};
    case kGpusBy: {
      GPUROTA_ASSIGN_OR_RETURN(options.giver, parse_gpu_giver(value));
      return {};
    }
    case kLookInterval: {
      GPUROTA_ASSIGN_OR_RETURN(const int count, parse_count("--interval", value, 50, 60000));
      options.interval = std::chrono::milliseconds(count);
      return {};
    }
    case kReview: {
      GPUROTA_ASSIGN_OR_RETURN(const int count, parse_count("--review", value, 1, 86400));
      options.review = std::chrono::seconds(count);
      return {};
    }
    case kLevel: {
      GPUROTA_ASSIGN_OR_RETURN(options.log_level, log::parse_level(value));
      return {};
    }
    default:
      break;
  }
  std::string* const text = find_member(options, option);
  if (!text) return fail(Code::kInternal, "an option that nobody reads");
  *text = value;
  return {};
}

}  // namespace

Result<DraOptions> parse_dra_options(int argc, char* const* argv) {
  const auto known = with_api_options({{"memory-unit", required_argument, nullptr, kMemoryUnit},
                                       {"mixed", no_argument, nullptr, kMixed},
                                       {"gpus-by", required_argument, nullptr, kGpusBy},
                                       {"kubelet-dir", required_argument, nullptr, kKubelet},
                                       {"cdi-dir", required_argument, nullptr, kCdi},
                                       {"state-dir", required_argument, nullptr, kState},
                                       {"runtime-dir", required_argument, nullptr, kRuntime},
                                       {"host-root", required_argument, nullptr, kHost},
                                       {"interval", required_argument, nullptr, kLookInterval},
                                       {"review", required_argument, nullptr, kReview},
                                       {"log-level", required_argument, nullptr, kLevel},
                                       {"help", no_argument, nullptr, 'h'},
                                       {"version", no_argument, nullptr, 'V'}});
  DraOptions options;
  GPUROTA_TRY(read_long_options(
      argc, argv, known.data(), "gpurota-dra",
      [&options](int option, const char* value) { return take_dra(options, option, value); }));
  if (!options.help && !options.version) GPUROTA_TRY(complete(options.api));
  return options;
}

}  // namespace gpurota::kube
