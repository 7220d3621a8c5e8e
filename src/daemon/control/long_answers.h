// Answers that are made in pieces. The answers of a user are made one after the other, in the order
// of the calls. State thread only.
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
  // Whether the connection's long answer is being made now. The connection must have a long answer.
  bool is_first(const ControlConnection& connection) const;
  // Call when the connection's long answer is complete, or its client has left. Returns the
  // connection whose long answer is to be made next, unless another long answer is being made. Does
  // nothing if the connection has no long answer.
  const ControlConnection* end(ControlConnection& connection);

 private:
  std::map<uid_t, std::deque<const ControlConnection*>> waiting_;
};

}  // namespace gpurota::daemon
