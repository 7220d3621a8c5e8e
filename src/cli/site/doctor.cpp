// doctor: checks what can be seen from here, then asks the daemon for its checks.
#include "abi/env.h"
#include "base/account_names.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/run/lookup.h"
#include "cli/site/config_text.h"
#include "cli/site/doctor_kubernetes.h"
#include "cli/site/doctor_local.h"
#include "cli/site/main_file.h"
#include "cli/text/output.h"
#include "cli/text/ps_doctor_text.h"
#include "proto/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using proto::Check;
using proto::CheckStatus;

// How long the search for stale programs may take: enough to check all programs of this user or,
// for root, all programs of the machine.
constexpr std::chrono::milliseconds kStalePatience{2000};

Check check_daemon(const client::Location& location, const Result<proto::GetInfo::Reply>& info) {
  if (!info) {
    return {"control socket", CheckStatus::kError, info.error().message,
            is_installed("gpurotad")
                ? "without a daemon, only the checks below can run"
                : "gpurotad, the daemon, is not installed: install its package (gpurotad_*.deb of "
                  "'./dev package'); without it, only the checks below can run"};
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

// Checks the kernel module and the device if there is no daemon to ask.
Check check_local_driver() {
  if (::access("/proc/driver/nvidia/version", R_OK) != 0) {
    return {"driver", CheckStatus::kWarning, "the NVIDIA kernel module is not loaded here",
            "install the driver, or try gpurota without a GPU: gpurota-sim rtx4090 -- bash "
            "(package gpurota-sim)"};
  }
  if (::access("/dev/nvidiactl", R_OK | W_OK) != 0) {
    return {"driver", CheckStatus::kError, "/dev/nvidiactl cannot be opened by this user",
            "join the group that owns it, or in a container give it the GPUs (--gpus all)"};
  }
  return {"driver", CheckStatus::kOk, "the NVIDIA kernel module is loaded", std::nullopt};
}

Check check_libc() {
  const std::string release = ::gnu_get_libc_version();
  // The version of libc on the oldest system that libgpurota is built for.
  const double number = std::strtod(release.c_str(), nullptr);
  if (number < 2.17) {
    return {"libc here", CheckStatus::kError, "glibc " + release + " is too old",
            "libgpurota needs glibc 2.17 or newer"};
  }
  return {"libc here", CheckStatus::kOk, "glibc " + release, std::nullopt};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The path that the daemon gives to programs, from its own check.
std::optional<std::string> library_in(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    if (check.name == "library" && check.summary.starts_with('/')) {
      return check.summary.substr(0, check.summary.find(':'));
    }
  }
  return std::nullopt;
}

std::optional<Bytes> locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return Bytes(limit.rlim_cur);
}

void add(std::vector<Check>& checks, std::optional<Check> check) {
  if (check) checks.push_back(std::move(*check));
}

// Checks that need no daemon.
void add_local(std::vector<Check>& checks) {
  checks.push_back(check_libc());
  checks.push_back(
      check_locked_memory(locked_memory_limit(), ::access("/dev/infiniband", F_OK) == 0));
  add(checks, check_stale_programs(read_stale_programs(kStalePatience)));
  const ShellEnvironment environment = {variable(GPUROTA_ENV_LEASE), variable(GPUROTA_ENV_TOKEN),
                                        variable("LD_PRELOAD")};
  for (Check& check : check_shell(environment, library_in(checks))) {
    checks.push_back(std::move(check));
  }
}

std::optional<Check> check_owner(const client::Location& location,
                                 const Result<proto::GetInfo::Reply>& info) {
  struct stat file {};
  if (::stat(location.socket.c_str(), &file) != 0) return std::nullopt;
  return check_socket_owner(location.socket, file.st_uid,
                            info ? std::optional(info->uid) : std::nullopt, ::geteuid());
}

// Kubernetes distributions have different folders for the kubelet: returns the first of these
// folders that exists, or the usual one if none exists.
std::string kubelet_dir() {
  constexpr const char* kUsual = "/var/lib/kubelet";
  for (const char* const dir :
       {kUsual, "/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet"}) {
    if (::access(dir, F_OK) == 0) return dir;
  }
  return kUsual;
}

void add_kubernetes(std::vector<Check>& checks, const DoctorOptions& options,
                    Result<client::Connection>& connection) {
  const std::string dir = options.kubelet_dir.value_or(kubelet_dir());
  const containers::KubernetesNode node = containers::read_kubernetes_node(dir, "/");
  for (Check& check : check_kubernetes(node, dir)) checks.push_back(std::move(check));
  if (!connection) return;
  if (const auto status = connection->call(proto::Status{})) {
    checks.push_back(check_pods(status->leases, node));
  }
}

// Whether the user may read the configuration files; if not, doctor does not check them.
bool may_read(const config::Loaded& loaded, const std::string& file) {
  if (::access(file.c_str(), R_OK) != 0 && errno == EACCES) return false;
  const std::string folder = config::drop_in_folder(file);
  if (::access(folder.c_str(), R_OK | X_OK) != 0 && errno == EACCES) return false;
  return std::all_of(loaded.mistakes.begin(), loaded.mistakes.end(), [](const auto& each) {
    return each.place.line > 0 || ::access(each.place.file.c_str(), R_OK) == 0 || errno != EACCES;
  });
}

void add_next_start(std::vector<Check>& checks, const Context& context,
                    Result<client::Connection>& connection) {
  const MainFile file = find_main_file(context);
  const config::Loaded loaded = config::load(file.path, file.required);
  if (!may_read(loaded, file.path)) return;
  const std::string& group = loaded.config.group;
  const auto gid = group.empty() ? Result<gid_t>(0) : read_gid(group);
  const bool known = gid || gid.error().code != Code::kNotFound;
  std::optional<std::size_t> changes;
  if (connection && loaded.mistakes.empty()) {
    const auto in_effect = connection->call(proto::ShowConfig{});
    if (in_effect) changes = changes_of(*in_effect, loaded.config).size();
  }
  checks.push_back(check_next_start(loaded, file.path, known, changes));
}

}  // namespace

int doctor(const Context& context, const DoctorOptions& options) {
  const client::Location location = context.location();
  auto connection = client::connect(location);
  const auto info = connection ? connection->call(proto::GetInfo{})
                               : Result<proto::GetInfo::Reply>(tl::unexpected(connection.error()));
  std::vector<Check> checks = {check_daemon(location, info)};
  add(checks, check_owner(location, info));
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
  add_next_start(checks, context, connection);
  add_local(checks);
  if (options.kubernetes) add_kubernetes(checks, options, connection);
  const bool bad = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.status == CheckStatus::kError;
  });
  const Layout layout = terminal_layout();
  const int printed = shown(options.json ? proto::document_json<proto::Doctor>({checks})
                                         : doctor_text(checks, layout));
  return bad ? kExitFailed : printed;
}

}  // namespace gpurota::cli
