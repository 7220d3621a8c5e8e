// doctor: what can be seen from here, then what the daemon sees.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/views.h"
#include "proto/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <gnu/libc-version.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using proto::Check;
using proto::CheckStatus;

Check check_daemon(const client::Location& location, const Result<proto::GetInfo::Reply>& info) {
  if (!info) {
    return {"control socket", CheckStatus::kError, info.error().message,
            "without a daemon, only the checks below can run"};
  }
  return {"control socket", CheckStatus::kOk,
          fmt::format("gpurotad answers at {} (pid {})", location.socket, info->pid), std::nullopt};
}

Check check_version(const proto::GetInfo::Reply& info) {
  const std::string own(proto::version());
  if (info.version == own) return {"version", CheckStatus::kOk, own, std::nullopt};
  return {"version", CheckStatus::kWarning,
          fmt::format("this is gpurota {}, the daemon is {}", own, info.version),
          "restart gpurotad after an update; programs and leases survive the restart"};
}

Check check_tenant_socket(const proto::GetInfo::Reply& info) {
  if (::access(info.tenant_socket.c_str(), R_OK | W_OK) == 0) {
    return {"tenant socket", CheckStatus::kOk, info.tenant_socket, std::nullopt};
  }
  return {"tenant socket", CheckStatus::kError,
          fmt::format("{} cannot be reached from here", info.tenant_socket),
          "programs cannot get GPU memory; in a container, mount the socket's directory"};
}

// The kernel module and the device, when no daemon can be asked.
Check check_local_driver() {
  if (::access("/proc/driver/nvidia/version", R_OK) != 0) {
    return {"driver", CheckStatus::kWarning, "the NVIDIA kernel module is not loaded here",
            "install the driver, or try gpurota without a GPU: gpurota-sim rtx4090 -- bash"};
  }
  if (::access("/dev/nvidiactl", R_OK | W_OK) != 0) {
    return {"driver", CheckStatus::kError, "/dev/nvidiactl cannot be opened by this user",
            "join the group that owns it, or in a container give it the GPUs (--gpus all)"};
  }
  return {"driver", CheckStatus::kOk, "the NVIDIA kernel module is loaded", std::nullopt};
}

Check check_libc() {
  const std::string release = ::gnu_get_libc_version();
  // What libgpurota is built against on the oldest system it is made for.
  const double number = std::strtod(release.c_str(), nullptr);
  if (number < 2.17) {
    return {"libc here", CheckStatus::kError, "glibc " + release + " is too old",
            "libgpurota needs glibc 2.17 or newer"};
  }
  return {"libc here", CheckStatus::kOk, "glibc " + release, std::nullopt};
}

// What in this user's environment would surprise a program.
std::vector<Check> check_environment() {
  std::vector<Check> checks;
  if (const char* lease = std::getenv("GPUROTA_LEASE")) {
    checks.push_back({"environment", CheckStatus::kWarning,
                      fmt::format("this shell runs under lease {}", lease),
                      "a 'gpurota run' in this shell takes another lease"});
  }
  if (const char* preload = std::getenv("LD_PRELOAD"); preload != nullptr && *preload != '\0') {
    checks.push_back(
        {"environment", CheckStatus::kWarning, fmt::format("LD_PRELOAD is set: {}", preload),
         "libgpurota is loaded before it; another CUDA interposer may not expect that"});
  }
  return checks;
}

}  // namespace

int doctor(const Context& context, const DoctorOptions& options) {
  const client::Location location = context.location();
  auto connection = client::connect(location);
  const auto info = connection ? connection->call(proto::GetInfo{})
                               : Result<proto::GetInfo::Reply>(tl::unexpected(connection.error()));
  std::vector<Check> checks = {check_daemon(location, info)};
  if (info) {
    checks.push_back(check_version(*info));
    checks.push_back(check_tenant_socket(*info));
    const auto reply = connection->call(proto::Doctor{});
    if (reply) {
      checks.insert(checks.end(), reply->checks.begin(), reply->checks.end());
    } else {
      checks.push_back({"daemon", CheckStatus::kError, reply.error().message, std::nullopt});
    }
  } else {
    checks.push_back(check_local_driver());
  }
  checks.push_back(check_libc());
  for (Check& check : check_environment()) checks.push_back(std::move(check));
  const bool bad = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.status == CheckStatus::kError;
  });
  const Look look = terminal_look();
  const int printed = shown(options.json ? proto::document_json<proto::Doctor>({checks})
                                         : doctor_text(checks, look));
  return bad ? kExitFailed : printed;
}

}  // namespace gpurota::cli
