// Finds out whether tenants of swap leases can be reached: checks whether a tenant that owes an
// answer to an order is stopped or makes no progress. State thread only.
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

  // Stores since when the tenant has owed an answer, and schedules checks of it. Call after each
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
