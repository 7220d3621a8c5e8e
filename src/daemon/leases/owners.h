// Sends messages to the owners of leases while they hold their leases. State thread only.
#pragma once

#include "base/ids.h"

#include <string>

namespace gpurota::daemon {

class Owners {
 public:
  virtual ~Owners() = default;
  // Sends a line that the owner's gpurota run shows; the line is lost if none is connected.
  virtual void tell_owner(LeaseId lease, const std::string& message) = 0;
};

}  // namespace gpurota::daemon
