// Where gpurota's files are for each user: the daemon's defaults, and the order in which clients
// look for the daemon (docs: `gpurota --help`, operate/configure.md):
//
//   --runtime-dir, then GPUROTA_RUNTIME_DIR, each taken as it is;
//   for a user: $XDG_RUNTIME_DIR/gpurota, then /tmp/gpurota-UID, if the directory is the user's own
//   and a daemon answers there;
//   /run/gpurota.
#pragma once

#include "abi/env.h"
#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::ipc {

constexpr const char* kSystemRuntimeDir = GPUROTA_SYSTEM_RUNTIME_DIR;
constexpr const char* kControlSocket = "control.sock";
constexpr const char* kTenantSocket = GPUROTA_TENANT_SOCKET_NAME;

// The facts, apart from flags, that decide the paths. Variables that are unset, empty or relative
// are empty here.
struct Environment {
  uid_t uid = 0;                // effective
  std::string runtime_dir;      // GPUROTA_RUNTIME_DIR, made absolute
  std::string xdg_runtime_dir;  // also empty if it is not this user's (as after `su`)
  std::string xdg_state_home;
  std::string xdg_config_home;
  std::string home;  // $HOME, else the account's
};
Environment read_environment();

struct Paths {
  std::string runtime_dir;
  std::string state_dir;
  std::string config_file;
};
// The daemon's paths unless flags say otherwise. Without a home directory, the state of a user's
// daemon is below its runtime directory.
Paths daemon_paths(const Environment& environment);

// Where a user's own daemon may be, best first. Empty for root.
std::vector<std::string> own_runtime_dirs(const Environment& environment);

// The directory that a client must use; what is in it need not exist. Touches the system: checks
// whether a user's own daemon answers.
std::string find_runtime_dir(const std::optional<std::string>& flag,
                             const Environment& environment);

std::string control_socket(const std::string& runtime_dir);
std::string tenant_socket(const std::string& runtime_dir);

// `path` as it is if absolute, else below the current directory.
std::string absolute(const std::string& path);

}  // namespace gpurota::ipc
