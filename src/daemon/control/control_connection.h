// A connection of the control socket. For control_server.cpp and its parts only.
#pragma once

#include "base/fd.h"
#include "daemon/control/call_handler.h"
#include "daemon/users/user_budgets.h"
#include "ipc/framer.h"
#include "ports/event_loop.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace gpurota::daemon {

struct ControlConnection {
  UserBudgets::Held descriptor;
  Fd fd;
  Caller caller;
  ports::EventLoop::SourcePtr source;
  ipc::Framer in{proto::kMaxCallBytes};
  // Output that the client has not read yet. The bound has room for a few full status replies.
  ipc::OutputBuffer out{std::size_t{8} << 20};
  std::optional<LeaseId> acquired;
  std::optional<LeaseId> held;
  std::optional<RequestId> waits;
  std::shared_ptr<AnswerStream> stream;
  bool stream_waits = false;  // the stream has no answer now
  std::shared_ptr<LongAnswer> long_answer;
  // Messages to send when the changes up to `upto` are on the disk, oldest first.
  struct Unsaid {
    std::uint64_t upto;
    std::string message;
  };
  std::deque<Unsaid> unsaid;
  // Set while an answer is made on a worker (Outcome::on_worker). A weak pointer to this expires
  // with the connection.
  std::shared_ptr<ControlConnection*> on_worker;
  // A call that waits until the store is open, or for the event after which the call is repeated.
  std::optional<proto::Call> postponed;
  bool waits_to_repeat = false;    // for an event (Outcome::again_after)
  std::uint64_t changed_upto = 0;  // the current call's last change of the store; 0: none
  TimePoint called{};              // when the current call came
  bool blocked = false;    // watched for writable, not for readable: the client has to read first
  bool queued = false;     // a call waits for its turn; nothing is read meanwhile
  bool hung_up = false;    // the client has left: only calls already sent are served; not watched
  bool broken = false;     // must be closed by the function that is using it
  bool held_back = false;  // not served until the user's connections have read more
  std::string newest;      // sent when `out` is empty, instead of earlier messages
  TimePoint read_at{};     // when the client last read some of `out`
  UserBudgets::Held unread;
  UserBudgets::Held unserved;  // the bytes in `in`
};

}  // namespace gpurota::daemon
