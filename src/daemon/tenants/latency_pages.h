// Tells processes of slices for whose bursts of work they hold back their own: those of interactive
// leases on the same GPU (abi/wire_latency.h). State thread only.
//
// A process of an interactive lease gets a page only while there is a process beside it that reads
// the page. All pages of a lease count for all processes of a lease beside it, whichever GPUs they
// use, because processes that work together must be held back together.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "daemon/tenants/tenant_table.h"
#include "sys/shared_page.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpurota::daemon {

class LatencyPages {
 public:
  // The part of the time, in thousandths, for which work may be held back: what is left is never
  // taken by interactive leases.
  static constexpr std::uint32_t kBudget = 800;

  explicit LatencyPages(const TenantTable& table) : table_(table) {}

  void on_lease_change(const LeaseEntry& entry, bool gone);
  // A tenant of this lease can be sent messages from now on.
  void on_connected(const LeaseEntry& entry);
  // Tells each tenant what has changed for it. Call also when a connection has ended or a tenant is
  // erased.
  void refresh();
  // The tenant has mapped a page. An answer to an older MARK is ignored.
  void on_marked(const Tenant& tenant, const gpurota_msg_marked& message);

 private:
  struct Marker {
    std::uint32_t seq;                   // of its MARK
    std::optional<sys::BurstPage> page;  // empty: it is mapped, and nobody writes by descriptor
    Fd to_read;                          // empty: not mapped yet
    std::set<TenantId> readers;
  };

  bool is_interactive(const Tenant& tenant) const;
  std::set<TenantId> beside(const Tenant& marker) const;
  void mark(const Tenant& tenant);
  void tell_readers(TenantId id, Marker& marker, const std::set<TenantId>& wanted,
                    std::map<TenantId, std::size_t>& read);

  const TenantTable& table_;
  std::set<LeaseId> interactive_;  // slices
  std::map<TenantId, Marker> markers_;
  std::uint32_t last_seq_ = 0;
};

}  // namespace gpurota::daemon
