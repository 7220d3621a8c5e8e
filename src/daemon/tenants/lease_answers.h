// Answers AUTOMATIC: finds the lease of a program that was started without one, or that knows only
// the token of its lease. State thread only.
#pragma once

#include "daemon/leases/automatic_leases.h"
#include "daemon/tenants/tenant_sessions.h"
#include "ports/durability.h"

#include <cstdint>
#include <map>
#include <set>

namespace gpurota::daemon {

class LeaseAnswers {
 public:
  struct Parts {
    ports::EventLoop& loop;
    AutomaticLeases& automatic;
    TenantSessions& sessions;
    // Null: each write is on the disk at once.
    const ports::Durability* durability;
  };

  explicit LeaseAnswers(Parts parts) : parts_(parts) {}

  // False: the client breaks the protocol, or does not read its answer.
  bool answer(TenantSession& session, const gpurota_msg_automatic& question);
  // Like answer(), for the session's `unsettled`.
  bool go_on(TenantSession& session);
  // Sends the answers about leases that are on the disk now.
  void on_durability(const ports::Durability::News& news);
  // The connection ends.
  void forget(TenantSession& session) { unsaid_.erase(&session); }

 private:
  bool tell(TenantSession& session, const gpurota_msg_lease& answer);
  void check_again(TenantSession& session, const gpurota_msg_automatic& question);

  Parts parts_;
  std::set<TenantSession*> unsaid_;  // sessions that wait until their lease is on the disk
  std::map<LeaseId, std::uint64_t> unsettled_;  // the change that stores each lease
};

}  // namespace gpurota::daemon
