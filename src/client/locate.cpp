#include "client/locate.h"

#include "ipc/paths.h"

#include <fmt/format.h>

#include <array>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::client {
namespace {

std::string group_name(gid_t gid) {
  std::array<char, 4096> buffer{};
  group entry{};
  group* found = nullptr;
  if (::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->gr_name;
  }
  return std::to_string(gid);
}

std::string not_running(const Location& location) {
  const std::string start = ::geteuid() == 0
                                ? "start it with 'systemctl start gpurotad' (or 'gpurotad')"
                                : "ask an administrator for 'systemctl start gpurotad', or start "
                                  "'gpurotad' as yourself";
  if (location.chosen) {
    return fmt::format(
        "no gpurotad is running at {}: start 'gpurotad --runtime-dir {}', or leave out "
        "--runtime-dir and GPUROTA_RUNTIME_DIR to use the machine's daemon",
        location.socket, location.runtime_dir);
  }
  return fmt::format("no gpurotad is running (looked at {}): {}", fmt::join(location.looked, ", "),
                     start);
}

std::string not_allowed(const Location& location) {
  struct stat info {};
  if (::stat(location.socket.c_str(), &info) != 0) {
    return fmt::format(
        "no access to {}: it belongs to another user's gpurotad; start "
        "'gpurotad' as yourself",
        location.runtime_dir);
  }
  if ((info.st_mode & S_IWGRP) != 0) {
    const std::string group = group_name(info.st_gid);
    return fmt::format(
        "no access to {}: it is for the group '{}'. An administrator adds you with "
        "'usermod -aG {} USER'; then log in again",
        location.socket, group, group);
  }
  return fmt::format("no access to {}: it is for user {} only", location.socket, info.st_uid);
}

}  // namespace

Location locate(const std::optional<std::string>& runtime_dir_flag) {
  const ipc::Environment environment = ipc::read_environment();
  Location location;
  location.chosen = runtime_dir_flag.has_value() || !environment.runtime_dir.empty();
  location.runtime_dir = ipc::find_runtime_dir(runtime_dir_flag, environment);
  location.socket = ipc::control_socket(location.runtime_dir);
  if (!location.chosen) {
    for (const std::string& dir : ipc::own_runtime_dirs(environment)) {
      location.looked.push_back(ipc::control_socket(dir));
    }
    location.looked.push_back(ipc::control_socket(ipc::kSystemRuntimeDir));
  }
  return location;
}

std::string default_config_file(const Location& location) {
  ipc::Environment environment = ipc::read_environment();
  const std::string own = ipc::daemon_paths(environment).config_file;
  const bool of_machine = location.runtime_dir == ipc::kSystemRuntimeDir;
  if (!of_machine || ::access(own.c_str(), F_OK) == 0) return own;
  environment.uid = 0;
  return ipc::daemon_paths(environment).config_file;
}

Result<Connection> connect(const Location& location, milliseconds timeout) {
  auto connection = Connection::open(location.socket, timeout);
  if (connection) return connection;
  Error error = std::move(connection.error());
  if (error.code == Code::kUnavailable || error.code == Code::kNotFound) {
    error.message = not_running(location);
  } else if (error.code == Code::kDenied) {
    error.message = not_allowed(location);
  }
  return tl::unexpected(std::move(error));
}

}  // namespace gpurota::client
