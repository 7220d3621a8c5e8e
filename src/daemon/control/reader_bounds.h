// How much of what a user is told may lie unread, and of what it has sent unserved, over all its
// connections. State thread only.
//
// While too much lies unread none of the user's calls is served; who then reads nothing for long is
// hung up on.
#pragma once

#include "daemon/users/user_budgets.h"
#include "ports/event_loop.h"

#include <functional>
#include <map>
#include <memory>

#include <sys/types.h>

namespace gpurota::daemon {

struct ControlConnection;

class ReaderBounds {
 public:
  using Connections = std::map<const ControlConnection*, std::unique_ptr<ControlConnection>>;

  struct Parts {
    ports::EventLoop& loop;
    UserBudgets& budgets;
    const Connections& connections;
    // Goes on with a connection when nobody is in a call: it may be served now, or is broken.
    std::function<void(const ControlConnection&)> resume_soon;
  };

  explicit ReaderBounds(Parts parts) : parts_(std::move(parts)) {}

  // Counts what is kept for it against its user.
  void count(ControlConnection& connection);
  // The same of what it has sent and is not served yet. False if that is too much.
  bool count_unserved(ControlConnection& connection);
  // Whether its user has left too much unread; it is then gone on with when there is less.
  bool holds_back(ControlConnection& connection);
  // Less of this user's may lie unread than before.
  void on_less(uid_t user);

 private:
  void wait_for_readers();
  void end_idle_readers();

  Parts parts_;
  ports::EventLoop::SourcePtr patience_;  // while somebody is held back
};

}  // namespace gpurota::daemon
