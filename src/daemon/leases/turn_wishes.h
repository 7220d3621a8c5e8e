// Checks the settings of a lease's turns, latency, compute time and soft limits when it is made and
// when it is changed, before LeaseManager and Queue get them. Pure; used on the state thread.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "daemon/leases/lease_entry.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::daemon {

// -100 to 100; 0 if nothing was said.
Result<int> read_priority(std::optional<int> said);

// "auto" is zero. The quantum that a user may set is bounded, because others wait for the end of
// the turn. Administrators may set everything that gpurota set accepts.
Result<std::optional<std::chrono::milliseconds>> read_quantum(
    const std::optional<std::string>& said, bool administrator);

// "normal" or "interactive".
Result<std::optional<LatencyClass>> read_latency(const std::optional<std::string>& said);
Result<void> check_latency(const AcquireRequest& request);
bool can_have(const Lease& lease, LatencyClass latency);

// The share after an update. Empty: it stays. `most` as written (compute_bound()).
ComputeShare changed_share(ComputeShare share, std::optional<int> least, std::optional<int> most);
// Whether the lease can have its share of the compute time.
Result<void> check_compute(const AcquireRequest& request);
Result<void> check_compute(const Lease& lease, const ComputeShare& share);

// An error if the site moves memory above a soft limit to host memory, and the memory of this lease
// cannot be moved.
Result<void> check_soft_limit(const config::SoftLimit& site, bool swap);

}  // namespace gpurota::daemon
