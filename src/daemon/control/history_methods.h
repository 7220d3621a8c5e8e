// The calls about what was: events, figures over time, and the report. All may be long, and are
// made a piece at a time (LongAnswer). State thread only.
#pragma once

#include "daemon/control/call_parts.h"

namespace gpurota::daemon {

class HistoryMethods {
 public:
  explicit HistoryMethods(const CallParts& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::Events&);
  Outcome on(const Caller& caller, const proto::Report&);
  Outcome on(const Caller& caller, const proto::History&);

 private:
  const CallParts& parts_;
};

}  // namespace gpurota::daemon
