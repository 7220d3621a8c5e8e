// Which lease a program is in that was started without one, or that knows its lease by a token only
// (AUTOMATIC). State thread only.
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
    // Null: what is stored is on the disk at once.
    const ports::Durability* durability;
  };

  explicit LeaseAnswers(Parts parts) : parts_(parts) {}

  // False: it breaks the protocol, or does not take its answer.
  bool answer(TenantSession& session, const gpurota_msg_automatic& question);
  // The same of a session's `unsettled`.
  bool go_on(TenantSession& session);
  // Tells programs of leases that the disk has now.
  void on_durability(const ports::Durability::News& news);
  // The connection ends.
  void forget(TenantSession& session) { unsaid_.erase(&session); }

 private:
  bool tell(TenantSession& session, const gpurota_msg_lease& answer);
  void check_again(TenantSession& session, const gpurota_msg_automatic& question);

  Parts parts_;
  std::set<TenantSession*> unsaid_;             // who wait for a lease until the disk has it
  std::map<LeaseId, std::uint64_t> unsettled_;  // automatic ones: with which change of the store
};

}  // namespace gpurota::daemon
