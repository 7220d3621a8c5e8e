// The listening sockets of gpurota-web: its own, or those of systemd (gpurota-web.socket), which
// keep the port while gpurota-web restarts. Never waits.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "web/host_check.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::web {

struct Listener {
  Fd socket;
  ListenAddress address;
};

// kIo, with the remedy, if another process has the port.
Result<Listener> listen_at(const ListenAddress& address);

// The listeners that systemd has passed to this process; empty if there are none. Call it once,
// before there are threads: it removes the variables from the environment. kInvalid, with the
// remedy: a passed descriptor is not a socket that listens at an address and port.
Result<std::vector<Listener>> take_passed_listeners();

// Whether other users cannot take this port while nobody listens there.
bool is_kept_for_root(const ListenAddress& address);

// A new connection.
struct Visitor {
  Fd socket;
  std::string address;
  // The group that limits count: the address; for IPv6 its network (/64); for this machine's own
  // addresses one common group.
  std::string group;
};
// nullopt: no connection is waiting.
std::optional<Visitor> accept_visitor(const Listener& listener);

}  // namespace gpurota::web
