// The calls about the past: events, figures over time, and the report. All answers may be long, and
// are made in pieces (LongAnswer). State thread only.
#pragma once

#include "daemon/control/call_context.h"

namespace gpurota::daemon {

class HistoryMethods {
 public:
  explicit HistoryMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::Events&);
  Outcome on(const Caller& caller, const proto::Report&);
  Outcome on(const Caller& caller, const proto::History&);

 private:
  const CallContext& parts_;
};

}  // namespace gpurota::daemon
