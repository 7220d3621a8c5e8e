// Whether tenants of swap leases can be reached: who owes an answer to an order is looked at,
// whether it is stopped or does not get on. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/turn_keeper.h"
#include "ports/event_loop.h"
#include "ports/processes.h"

namespace gpurota::daemon {

class SwapReach {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    TurnKeeper& turns;
    const config::Config& config;
  };

  // All must outlive the SwapReach.
  SwapReach(Parts parts, SwapTenantMap& tenants) : parts_(parts), tenants_(tenants) {}

  // Remembers since when it owes us something, and sees to it that it is looked at. After each
  // order and each message.
  void expect(SwapTenant& tenant);

 private:
  void find_stopped();
  void set_reachable(SwapTenant& tenant, bool stopped, bool stuck);

  Parts parts_;
  SwapTenantMap& tenants_;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
