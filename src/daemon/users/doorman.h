// The door of a socket: listens, finds out who comes, and lets no user have too many connections or descriptors at
// once. Both servers of the daemon have one. State thread only.
#pragma once

#include "daemon/users/user_budgets.h"
#include "ipc/peer.h"
#include "ipc/unix_socket.h"
#include "ports/event_loop.h"

#include <functional>
#include <optional>
#include <string>

namespace gpurota::daemon {

class Doorman {
 public:
  struct Rules {
    std::string who;  // "tenant": what its visitors are called in the log
    std::function<int()> most_per_user;
    std::function<long(uid_t)> count;  // connections that this user has now
    UserBudgets& budgets;
    // The visitor's descriptor counts against its user until the last goes.
    std::function<void(Fd, ipc::Peer, UserBudgets::Held)> welcome;
    // Says why somebody is turned away, if that can be said at once. Empty: nothing is said.
    std::function<void(const Fd&, const Error&)> turn_away = {};
  };

  Doorman(ports::EventLoop& loop, Rules rules) : loop_(loop), rules_(std::move(rules)) {}

  Result<void> listen(const std::string& path, const ipc::ListenOptions& options);
  // Who comes from now on waits for the next daemon where systemd listens for it, and finds nobody elsewhere.
  void close();

 private:
  void on_connection();
  Result<UserBudgets::Held> admit(const ipc::Peer& peer) const;

  ports::EventLoop& loop_;
  Rules rules_;
  std::optional<ipc::Listener> listener_;
  // Its members, where others could connect before the socket's mode was set.
  std::optional<gid_t> only_;
  ports::EventLoop::SourcePtr listening_;  // declared after the listener: must go first
};

}  // namespace gpurota::daemon
