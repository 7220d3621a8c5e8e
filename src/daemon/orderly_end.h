// Ends the daemon on request: accepts no more connections, answers the calls received so far, and
// stores for the next daemon which tenants were connected. State thread only.
#pragma once

#include "core/time.h"
#include "daemon/control/control_server.h"
#include "daemon/tenants/tenant_roster.h"
#include "lease/grant_book.h"
#include "ports/event_loop.h"

#include <functional>

namespace gpurota::daemon {

class OrderlyEnd {
 public:
  // All must outlive the OrderlyEnd.
  OrderlyEnd(ports::EventLoop& loop, ControlServer& control, const TenantRoster& roster,
             const lease::GrantBook& grants)
      : loop_(loop), control_(control), roster_(roster), grants_(grants) {}

  // Calls `done` when all calls are answered, or after a second. A second begin() calls its `done`
  // at once: the administrator is in a hurry.
  void begin(std::function<void()> done);

 private:
  void go_on(TimePoint deadline);
  void end();

  ports::EventLoop& loop_;
  ControlServer& control_;
  const TenantRoster& roster_;
  const lease::GrantBook& grants_;
  std::function<void()> done_;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
