#include "ipc/paths.h"

#include "base/directory.h"
#include "ipc/unix_socket.h"

#include <fmt/core.h>

#include <cstdlib>

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string absolute_variable(const char* name) {
  std::string value = variable(name);
  return value.empty() || value.front() == '/' ? value : "";
}

std::string account_home(uid_t uid) {
  std::vector<char> buffer(16384);
  passwd account{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &account, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return "";
  }
  const std::string home = found->pw_dir == nullptr ? "" : found->pw_dir;
  return home.empty() || home.front() != '/' ? "" : home;
}

bool belongs_to(const std::string& path, uid_t uid) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid;
}

}  // namespace

Environment read_environment() {
  Environment environment;
  environment.uid = ::geteuid();
  environment.runtime_dir = absolute(variable(GPUROTA_ENV_RUNTIME_DIR));
  environment.xdg_runtime_dir = absolute_variable("XDG_RUNTIME_DIR");
  if (!belongs_to(environment.xdg_runtime_dir, environment.uid))
    environment.xdg_runtime_dir.clear();
  environment.xdg_state_home = absolute_variable("XDG_STATE_HOME");
  environment.xdg_config_home = absolute_variable("XDG_CONFIG_HOME");
  environment.home = absolute_variable("HOME");
  if (environment.home.empty()) environment.home = account_home(environment.uid);
  return environment;
}

std::vector<std::string> own_runtime_dirs(const Environment& environment) {
  std::vector<std::string> dirs;
  if (environment.uid == 0) return dirs;
  if (!environment.xdg_runtime_dir.empty())
    dirs.push_back(environment.xdg_runtime_dir + "/gpurota");
  dirs.push_back(fmt::format("/tmp/gpurota-{}", environment.uid));
  return dirs;
}

Paths daemon_paths(const Environment& environment) {
  Paths paths;
  if (environment.uid == 0) {
    paths = {kSystemRuntimeDir, "/var/lib/gpurota", "/etc/gpurota/gpurota.toml"};
  } else {
    paths.runtime_dir = own_runtime_dirs(environment).front();
    const std::string& home = environment.home;
    std::string state = environment.xdg_state_home;
    if (state.empty() && !home.empty()) state = home + "/.local/state";
    paths.state_dir = state.empty() ? paths.runtime_dir + "/state" : state + "/gpurota";
    std::string config = environment.xdg_config_home;
    if (config.empty() && !home.empty()) config = home + "/.config";
    paths.config_file = (config.empty() ? "/etc" : config) + "/gpurota/gpurota.toml";
  }
  if (!environment.runtime_dir.empty()) paths.runtime_dir = environment.runtime_dir;
  return paths;
}

std::string find_runtime_dir(const std::optional<std::string>& flag,
                             const Environment& environment) {
  if (flag) return absolute(*flag);
  if (!environment.runtime_dir.empty()) return environment.runtime_dir;
  for (const std::string& dir : own_runtime_dirs(environment)) {
    // Any user could have made a directory of that name in /tmp, and listen in it.
    if (check_directory(dir, environment.uid) && answers(control_socket(dir), SOCK_STREAM))
      return dir;
  }
  return kSystemRuntimeDir;
}

std::string control_socket(const std::string& runtime_dir) {
  return runtime_dir + "/" + kControlSocket;
}
std::string tenant_socket(const std::string& runtime_dir) {
  return runtime_dir + "/" + kTenantSocket;
}

std::string absolute(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  char* here = ::get_current_dir_name();
  std::string result = (here == nullptr ? std::string() : std::string(here)) + "/" + path;
  std::free(here);
  return result;
}

}  // namespace gpurota::ipc
