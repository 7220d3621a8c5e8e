#include "daemon/options.h"

#include "base/log_option.h"
#include "base/options.h"
#include "proto/service.h"

namespace gpurota::daemon {
namespace {

constexpr std::string_view kBefore = R"(Usage: gpurotad [OPTION]...

The node daemon of gpurota: it manages leases and memory limits and watches this machine's GPUs. As
root it serves all users, else only its own user. It runs in the foreground and logs to stderr.

)";
constexpr std::string_view kAfter = R"(
Several daemons can run side by side if each has its own runtime and state directory.
See gpurotad(8) and gpurota.toml(5).
)";

std::vector<Option> rows(Options& options) {
  return {{'\0', "--runtime-dir", &options.runtime_dir, "DIR",
           "where the sockets are   (/run/gpurota; else $XDG_RUNTIME_DIR/gpurota)"},
          {'\0', "--state-dir", &options.state_dir, "DIR",
           "what outlives a restart (/var/lib/gpurota; else ~/.local/state/gpurota)"},
          {'\0', "--config", &options.config, "FILE",
           "the configuration       (/etc/gpurota/gpurota.toml;\n"
           "                         else ~/.config/gpurota/gpurota.toml)"},
          {'\0', "--check-config", &options.check_config, "",
           "read the configuration, report mistakes, and exit"},
          {'\0', "--restore-device-files", &options.restore_devices, "",
           "put back what access.strict has changed, and exit; where no\ndaemon will run"},
          {'\0', "--preload", &options.preload, "FILE",
           "libgpurota.so to give to programs (found beside the installed\ngpurotad)"},
          {'\0', "--publish-library", &options.publish_library, "DIR",
           "copy libgpurota.so there and give programs the copy. For a\n"
           "gpurotad in a container: a folder of the machine, mounted at the\nsame path"},
          {'\0', "--driver-root", &options.driver_root, "DIR",
           "where dev, proc/driver and the driver's libraries are. For a\n"
           "gpurotad in a container: where the machine's / is mounted (/)"},
          log_level_option(options.log_level)};
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& words) {
  Options options;
  const Program program{"gpurotad", proto::version(), kBefore, kAfter};
  GPUROTA_ASSIGN_OR_RETURN(options.print, read_program_options(program, rows(options), words));
  return options;
}

}  // namespace gpurota::daemon
