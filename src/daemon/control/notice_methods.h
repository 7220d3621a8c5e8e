// The call about notices to users. State thread only.
#pragma once

#include "daemon/control/call_context.h"

namespace gpurota::daemon {

class NoticeMethods {
 public:
  explicit NoticeMethods(const CallContext& parts) : parts_(parts) {}

  // A stream: the result of each channel, as soon as the channel has ended.
  Outcome on(const Caller& caller, const proto::TestNotice&);

 private:
  const CallContext& parts_;
};

}  // namespace gpurota::daemon
