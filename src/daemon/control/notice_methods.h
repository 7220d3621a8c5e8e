// The call about notices to users. State thread only.
#pragma once

#include "daemon/control/call_context.h"

namespace gpurota::daemon {

class NoticeMethods {
 public:
  explicit NoticeMethods(const CallContext& parts) : parts_(parts) {}

  // Its answers are what each channel did, as it ends.
  Outcome on(const Caller& caller, const proto::TestNotice&);

 private:
  const CallContext& parts_;
};

}  // namespace gpurota::daemon
