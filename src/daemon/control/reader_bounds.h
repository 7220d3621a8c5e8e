// Bounds the unread output and the unserved calls of a user, over all the user's connections. State
// thread only.
//
// While a user has too much unread output, none of the user's calls is served. A client that then
// reads nothing for 10 seconds is disconnected.
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
    // Resumes a connection that may be served now or is broken, as soon as no call is in progress.
    std::function<void(const ControlConnection&)> resume_soon;
  };

  explicit ReaderBounds(Parts parts) : parts_(std::move(parts)) {}

  // Counts the unread output of the connection against its user.
  void count(ControlConnection& connection);
  // Counts the unserved calls of the connection against its user. False: the user has too many.
  bool count_unserved(ControlConnection& connection);
  // Whether the connection waits because its user has too much unread output; on_less()
  // resumes the connection.
  bool holds_back(ControlConnection& connection);
  // Call when the user may have less unread output than before.
  void on_less(uid_t user);

 private:
  void wait_for_readers();
  void end_idle_readers();

  Parts parts_;
  ports::EventLoop::SourcePtr patience_;  // set while a connection is held back
};

}  // namespace gpurota::daemon
