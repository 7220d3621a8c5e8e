// A connection of the control socket. Of control_server.cpp and its parts only.
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
  // The output that may wait for a slow reader: a few full status replies.
  ipc::OutputBuffer out{std::size_t{8} << 20};
  std::optional<LeaseId> acquired;
  std::optional<LeaseId> held;
  std::optional<RequestId> waits;
  std::shared_ptr<AnswerStream> stream;
  bool stream_waits = false;  // it has nothing for now
  std::shared_ptr<LongAnswer> long_answer;
  // Messages to send when the disk has the changes up to `upto`, oldest first.
  struct Unsaid {
    std::uint64_t upto;
    std::string message;
  };
  std::deque<Unsaid> unsaid;
  // While its answer is made on a worker (Outcome::on_worker): whoever has a weak pointer to this
  // knows whether the connection is still there.
  std::shared_ptr<ControlConnection*> on_worker;
  std::optional<proto::Call> postponed;  // until the store is open, or a GPU has been sampled
  bool waits_for_sample = false;
  TimePoint called{};    // when the call that is served came
  bool blocked = false;  // watched for writable instead of readable: what comes next waits for that
  bool queued = false;   // a call of it waits for its turn: nothing is read
  bool hung_up = false;  // nothing more will come than what it has sent, and it is not watched
  bool broken = false;   // to be closed by whoever holds it on the stack
  bool held_back = false;  // until its user's connections have read more
  std::string newest;      // told when `out` has been taken, instead of what came before it
  TimePoint read_at{};     // when it last took something of `out`
  UserBudgets::Held unread;
  UserBudgets::Held unserved;  // what is in `in`
};

}  // namespace gpurota::daemon
