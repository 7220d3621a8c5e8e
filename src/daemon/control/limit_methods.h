// The call that tells users what they may have. State thread only.
#pragma once

#include "daemon/control/call_parts.h"

namespace gpurota::daemon {

class LimitMethods {
 public:
  explicit LimitMethods(const CallParts& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::GetLimits&);

 private:
  void add_booking_bounds(uid_t uid, std::vector<proto::UserLimit>& limits) const;

  const CallParts& parts_;
};

}  // namespace gpurota::daemon
