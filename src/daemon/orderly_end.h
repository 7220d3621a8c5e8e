// How a daemon ends that is told to: it takes nobody in any more, answers what it has been asked,
// and leaves the next one a note of who was there. State thread only.
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
  // All outlive it.
  OrderlyEnd(ports::EventLoop& loop, ControlServer& control, const TenantRoster& roster,
             const lease::GrantBook& grants)
      : loop_(loop), control_(control), roster_(roster), grants_(grants) {}

  // Calls `done` when all have their answers, or after a second; at once if it is told twice:
  // somebody is in a hurry.
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
