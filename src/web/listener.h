// Where gpurota-web listens: sockets of its own, or those at which systemd listens for it
// (gpurota-web.socket), so that nobody else can have the port while it is restarted. Never waits.
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

// kIo, with what to do, if somebody else has the port.
Result<Listener> listen_at(const ListenAddress& address);

// The listeners that systemd has passed to this process; none elsewhere. Once, before there are
// threads: the environment says no more of them. kInvalid, with what to do: something else than
// sockets that listen at addresses and ports.
Result<std::vector<Listener>> take_passed_listeners();

// Whether other users cannot have this port while nobody listens there.
bool is_kept_for_root(const ListenAddress& address);

// Somebody has connected.
struct Visitor {
  Fd socket;
  std::string address;
  // Whom it counts for: an address, of IPv6 its network (/64), and one for all of this machine's
  // own.
  std::string group;
};
// Nothing: nobody waits any more.
std::optional<Visitor> accept_visitor(const Listener& listener);

}  // namespace gpurota::web
