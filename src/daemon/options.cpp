#include "daemon/options.h"

#include "base/long_options.h"

namespace gpurota::daemon {

const char* const kUsage =
    R"(Usage: gpurotad [OPTION]...

The node daemon of gpurota: it manages leases and memory limits and watches this machine's GPUs. As
root it serves all users, else only its own user. It runs in the foreground and logs to stderr.

  --runtime-dir DIR   where the sockets are   (/run/gpurota; else $XDG_RUNTIME_DIR/gpurota)
  --state-dir DIR     what outlives a restart (/var/lib/gpurota; else ~/.local/state/gpurota)
  --config FILE       the configuration       (/etc/gpurota/gpurota.toml; else ~/.config/gpurota/…)
  --check-config      read the configuration, report mistakes, and exit
  --restore-device-files
                      put back what access.strict has changed, and exit; where no daemon will run
  --preload FILE      libgpurota.so to give to programs (found beside the installed gpurotad)
  --publish-library DIR
                      copy libgpurota.so there and give programs the copy. For a gpurotad in a
                      container: a folder of the machine, mounted at the same path
  --driver-root DIR   where dev, proc/driver and the driver's libraries are. For a gpurotad in a
                      container: where the machine's / is mounted (/)
  --log-level LEVEL   debug, info, warning or error (info)
  --help, --version

Several daemons can run side by side if each has its own runtime and state directory.
See gpurotad(8) and gpurota.toml(5).
)";

namespace {

enum {
  kRuntimeDir = 256,
  kStateDir,
  kConfig,
  kCheckConfig,
  kPreload,
  kPublishLibrary,
  kDriverRoot,
  kRestore,
  kLogLevel
};

// Where the value of an option that is taken as it is goes to.
std::optional<std::string>* find_text(Options& options, int option) {
  if (option == kRuntimeDir) return &options.runtime_dir;
  if (option == kStateDir) return &options.state_dir;
  if (option == kConfig) return &options.config;
  if (option == kPreload) return &options.preload;
  if (option == kPublishLibrary) return &options.publish_library;
  if (option == kDriverRoot) return &options.driver_root;
  return nullptr;
}

Result<void> take(Options& options, int option, const char* value) {
  switch (option) {
    case kCheckConfig:
      options.check_config = true;
      return {};
    case kRestore:
      options.restore_devices = true;
      return {};
    case kLogLevel: {
      GPUROTA_ASSIGN_OR_RETURN(options.log_level, log::parse_level(value));
      return {};
    }
    case 'h':
      options.help = true;
      return {};
    case 'V':
      options.version = true;
      return {};
    default:
      return fail(Code::kInternal, "an option that nobody reads");
  }
}

}  // namespace

Result<Options> parse_options(int argc, char* const* argv) {
  const option known[] = {{"runtime-dir", required_argument, nullptr, kRuntimeDir},
                          {"state-dir", required_argument, nullptr, kStateDir},
                          {"config", required_argument, nullptr, kConfig},
                          {"check-config", no_argument, nullptr, kCheckConfig},
                          {"preload", required_argument, nullptr, kPreload},
                          {"publish-library", required_argument, nullptr, kPublishLibrary},
                          {"driver-root", required_argument, nullptr, kDriverRoot},
                          {"restore-device-files", no_argument, nullptr, kRestore},
                          {"log-level", required_argument, nullptr, kLogLevel},
                          {"help", no_argument, nullptr, 'h'},
                          {"version", no_argument, nullptr, 'V'},
                          {nullptr, 0, nullptr, 0}};
  Options options;
  GPUROTA_TRY(read_long_options(argc, argv, known, "gpurotad",
                                [&options](int option, const char* value) -> Result<void> {
                                  if (auto* const text = find_text(options, option)) {
                                    *text = value;
                                    return {};
                                  }
                                  return take(options, option, value);
                                }));
  return options;
}

}  // namespace gpurota::daemon
