// Tells processes for whose bursts of work they hold back their own: those of interactive leases on
// the same GPU (abi/wire_latency.h). State thread only.
//
// A process of an interactive lease gets a page only while there is a process beside it that reads
// the page. All pages of a lease count for all processes of a lease beside it, whichever GPUs they
// use, because processes that work together must be held back together.
#pragma once

#include "config/config.h"
#include "daemon/leases/lease_entry.h"
#include "daemon/tenants/last_minute.h"
#include "daemon/tenants/tenant_table.h"
#include "sys/shared_page.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpurota::daemon {

class LatencyPages {
 public:
  LatencyPages(const config::Config& config, const TenantTable& table, UserBudgets& budgets)
      : config_(config), table_(table), budgets_(budgets) {}

  void on_lease_change(const LeaseEntry& entry, bool gone);
  // A tenant of this lease can be sent messages from now on.
  void on_connected(const LeaseEntry& entry);
  // Tells each tenant what has changed for it. Also call when a connection has ended, a tenant is
  // erased, or the configuration has changed.
  void refresh();
  // Sends again what a tenant has not taken because its socket was full.
  void retry();
  // The tenant has mapped a page. An answer to an older MARK is ignored.
  void on_marked(const Tenant& tenant, const gpurota_msg_marked& message);
  // The interactive leases for which processes of this lease hold back work.
  std::set<LeaseId> held_back_for(LeaseId lease) const;
  // The longest time for which one of them has held back work, as that process reports. Processes
  // that have ended do not count.
  std::chrono::microseconds held(LeaseId lease) const;
  // Counts what the processes have reported since the last call. Call every few seconds. A process
  // that lies is counted for the time that has passed at most.
  void sample(TimePoint now);
  // Nothing: the lease holds back no work.
  std::optional<LastMinute> last_minute(LeaseId lease, TimePoint now) const;

 private:
  // The last reports of a lease's processes, and their sum.
  struct Reports {
    HeldCount count;
    TimePoint when;
    std::map<TenantId, std::chrono::microseconds> held;
  };
  // A tenant that marks its bursts. Without a page, and nothing to read, it could not be given one.
  struct Marker {
    std::uint32_t seq = 0;               // of its MARK
    UserBudgets::Held descriptors;       // for both of the following
    std::optional<sys::BurstPage> page;  // empty: it is mapped, and nobody writes by descriptor
    Fd to_read;                          // empty: not mapped yet
    std::set<TenantId> readers;
  };
  // The tenants that hold back work, by their GPUs.
  using Holders = std::map<GpuUuid, std::vector<TenantId>>;

  bool update(const LeaseEntry& entry, bool gone);
  void sample(LeaseId lease, const std::set<LeaseId>& whom, TimePoint now);
  bool is_interactive(const Tenant& tenant) const;
  Holders holders() const;
  std::set<TenantId> wanted(TenantId marker, const Holders& holders) const;
  void mark(const Tenant& tenant);
  void end_holds(TenantId id, Marker& marker, const std::set<TenantId>& wanted);
  void begin_holds(TenantId id, Marker& marker, const std::set<TenantId>& wanted,
                   std::map<TenantId, std::size_t>& read);

  const config::Config& config_;
  const TenantTable& table_;
  UserBudgets& budgets_;
  std::uint32_t told_budget_ = 0;         // the budget in the newest HOLD
  std::map<LeaseId, uid_t> interactive_;  // and their users
  std::map<TenantId, Marker> markers_;
  std::map<LeaseId, Reports> reports_;  // of the leases that hold back work
  std::uint32_t last_seq_ = 0;
  bool unsent_ = false;  // a message was not taken
};

}  // namespace gpurota::daemon
