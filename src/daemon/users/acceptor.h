// Accepts connections of a socket: listens, reads the peer's identity, and lets no user have too
// many connections or descriptors at a time. Both servers of the daemon have an acceptor. State
// thread only.
//
// Takes one connection at a time from the kernel. If a user connects faster than others, the user's
// further connections wait in a queue of all users (burst_queue.h).
#pragma once

#include "daemon/users/burst_queue.h"
#include "daemon/users/dispatcher.h"
#include "daemon/users/user_budgets.h"
#include "ipc/peer.h"
#include "ipc/unix_socket.h"
#include "ports/event_loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace gpurota::daemon {

class Acceptor final : private DispatchClient<std::uint64_t> {
 public:
  struct Rules {
    std::string who;  // "tenant": what clients are called in the log
    std::function<int()> most_per_user;
    std::function<long(uid_t)> count;  // connections that this user has now
    UserBudgets& budgets;
    // Takes over an accepted connection. Its descriptor counts against the user until the Held is
    // destroyed.
    std::function<void(Fd, ipc::Peer, UserBudgets::Held)> welcome;
    // Sends the reason to a client that is refused, if that is possible without waiting. Empty:
    // nothing is sent.
    std::function<void(const Fd&, const Error&)> turn_away = {};
  };

  Acceptor(ports::EventLoop& loop, Rules rules)
      : loop_(loop), rules_(std::move(rules)), dispatcher_(loop, *this) {}

  Result<void> listen(const std::string& path, const ipc::ListenOptions& options);
  // From now on, a client that connects waits for the next daemon if systemd listens on the socket,
  // and is refused otherwise.
  void close();

 private:
  struct Waiting {
    Fd fd;
    uid_t user = 0;
    UserBudgets::Held descriptor;
  };
  void on_connection();
  void put_off(Fd fd, uid_t user);
  void serve(const std::uint64_t& key) override;
  void let_in(Fd fd);
  void turn_away(const Fd& fd, uid_t user, const Error& why) const;
  Result<void> check_number(uid_t user, std::size_t more) const;
  Result<UserBudgets::Held> admit(const ipc::Peer& peer) const;

  ports::EventLoop& loop_;
  Rules rules_;
  Dispatcher<std::uint64_t, BurstQueue<std::uint64_t>> dispatcher_;
  std::map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_ = 0;
  std::optional<ipc::Listener> listener_;
  // For a socket that systemd passed: only members of this group may connect. A check is needed, as
  // others could connect before the daemon set the mode of the socket.
  std::optional<gid_t> only_;
  ports::EventLoop::SourcePtr listening_;  // declared after the listener: must be destroyed first
};

}  // namespace gpurota::daemon
