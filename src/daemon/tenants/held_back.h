// Says for how long work of a lease was held back in the last minute, and for whom: for interactive
// leases (latency_pages.h), and for the windows of other leases (compute_shares.h). Records it if
// the time was long. State thread only.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/tenants/compute_shares.h"
#include "daemon/tenants/latency_pages.h"
#include "daemon/tenants/tenant_records.h"

#include <map>
#include <optional>
#include <string>

namespace gpurota::daemon {

class HeldBack {
 public:
  struct Parts {
    const LeaseTables& leases;
    const GpuTable& gpus;
    LatencyPages& latency;
    const ComputeShares& shares;
    TenantRecords& records;
  };

  explicit HeldBack(Parts parts) : parts_(parts) {}

  // Nothing: the lease's work is not held back, and its GPU's time is not divided.
  std::optional<LastMinute> last_minute(LeaseId lease, TimePoint now) const;
  // Call at each sample of a GPU.
  void sample(TimePoint now);

 private:
  void report(const Lease& lease, TimePoint now);

  Parts parts_;
  TimePoint sampled_{}, checked_{};
  std::map<LeaseId, TimePoint> reported_;
};

// Why the last minute of a lease is worth an event; empty: it is not. `latency`: of the work that
// was held back for interactive leases; `shares`: of the divided time.
std::string held_back_text(const Lease& lease, const std::string& gpu,
                           const std::optional<LastMinute>& latency,
                           const std::optional<LastMinute>& shares);

}  // namespace gpurota::daemon
