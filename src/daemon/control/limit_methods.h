// The call about the limits of a user. State thread only.
#pragma once

#include "daemon/control/call_context.h"

namespace gpurota::daemon {

class LimitMethods {
 public:
  explicit LimitMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::GetLimits&);

 private:
  void add_booking_bounds(uid_t uid, std::vector<proto::UserLimit>& limits) const;

  const CallContext& parts_;
};

}  // namespace gpurota::daemon
