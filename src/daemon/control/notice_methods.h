// The call about notices to users. State thread only.
#pragma once

#include "daemon/control/call_parts.h"

namespace gpurota::daemon {

class NoticeMethods {
 public:
  explicit NoticeMethods(const CallParts& parts) : parts_(parts) {}

  // Its answers are what each channel did, as it ends.
  Outcome on(const Caller& caller, const proto::TestNotice&);

 private:
  const CallParts& parts_;
};

}  // namespace gpurota::daemon
