// Finds the daemon for this user, and explains what to do if there is none.
#pragma once

#include "base/result.h"
#include "client/connection.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::client {

// Where to connect, and where else we looked.
struct Location {
  std::string runtime_dir;
  std::string socket;
  bool chosen = false;              // by --runtime-dir or GPUROTA_RUNTIME_DIR
  std::vector<std::string> looked;  // sockets tried, in order, unless `chosen`
};
Location locate(const std::optional<std::string>& runtime_dir_flag);

// The main configuration file of the daemon at this location; a guess, as the daemon is not asked.
std::string default_config_file(const Location& location);

// Connects; the error says what was tried and what to do: start a daemon, join a group.
Result<Connection> connect(const Location& location, milliseconds timeout = kConnectTimeout);

}  // namespace gpurota::client
