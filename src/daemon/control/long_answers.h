// Answers that are made a piece at a time: of those of a user one at a time, in the order of their
// calls. State thread only.
#pragma once

#include "daemon/control/call_handler.h"

#include <deque>
#include <map>
#include <memory>

#include <sys/types.h>

namespace gpurota::daemon {

struct ControlConnection;

class LongAnswers {
 public:
  void begin(ControlConnection& connection, std::shared_ptr<LongAnswer> work);
  // Whether the connection's, which has one, is the one that is being made.
  bool is_first(const ControlConnection& connection) const;
  // The connection's long answer is made, or its client is gone. Returns the connection that is
  // first now, if that has changed; does nothing if the connection has no long answer.
  const ControlConnection* end(ControlConnection& connection);

 private:
  std::map<uid_t, std::deque<const ControlConnection*>> waiting_;
};

}  // namespace gpurota::daemon
