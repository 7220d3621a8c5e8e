// Tells the owners of leases something while they hold them. State thread only.
#pragma once

#include "base/ids.h"

#include <string>

namespace gpurota::daemon {

class Owners {
 public:
  virtual ~Owners() = default;
  // A line, where their gpurota run shows it; nobody hears it if nobody is connected.
  virtual void tell_owner(LeaseId lease, const std::string& message) = 0;
};

}  // namespace gpurota::daemon
