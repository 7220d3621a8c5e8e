// The call about notices to users. State thread only.
#pragma once

#include "daemon/control/call_context.h"

namespace gpurota::daemon {

class NoticeMethods {
 public:
  explicit NoticeMethods(const CallContext& parts) : parts_(parts) {}

  // Answers with a stream that gives the result of each channel as soon as it is known.
  Outcome on(const Caller& caller, const proto::TestNotice&);

 private:
  const CallContext& parts_;
};

}  // namespace gpurota::daemon
