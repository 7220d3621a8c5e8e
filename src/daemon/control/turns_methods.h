// The calls about turns, and about the settings that administrators make for a GPU. State thread
// only.
#pragma once

#include "daemon/control/call_context.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

class TurnsMethods {
 public:
  explicit TurnsMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::ListTurns&);
  Outcome on(const Caller& caller, const proto::SetGpus&);

 private:
  Result<void> set_gpus(const Caller& caller, const proto::SetGpus& call);

  const CallContext& parts_;
};

}  // namespace gpurota::daemon
