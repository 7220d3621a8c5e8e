// The DRA driver as kubelet sees it: two Unix sockets, one by which kubelet finds the driver
// (plugins_registry) and one where it asks. gRPC stays in the .cpp; its threads call what is given
// here.
#pragma once

#include "kube/dra/claim.h"
#include "kube/dra/health.h"
#include "kube/published.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::kube {

// The devices that the containers of a lease of the claim are given.
struct PreparedLease {
  std::vector<ClaimDevice> devices;
  std::vector<std::string> cdi_devices;
};
using Prepared = std::vector<PreparedLease>;

// Whom kubelet's questions go to. Called on gRPC's threads, several at once; each returns in time,
// or with kTimeout.
class ClaimHandler {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  virtual ~ClaimHandler() = default;
  virtual Result<Prepared> prepare(const ClaimId& claim, Deadline deadline) = 0;
  virtual Result<void> unprepare(const ClaimId& claim, Deadline deadline) = 0;
  // Kubelet has taken us, or says why not (empty: it has).
  virtual void on_registration(const std::string& refusal) = 0;
};

// The health of the devices of a pool, for kubelet.
struct PoolHealth {
  std::string pool;
  std::vector<DeviceHealth> devices;
  bool operator==(const PoolHealth&) const = default;
};

class DraServer {
 public:
  struct Sockets {
    std::string registration, driver;
  };
  // In the place of what is at these sockets. `handler` and `health` outlive it. kIo if it cannot
  // listen there.
  static Result<std::unique_ptr<DraServer>> listen(const Sockets& sockets, ClaimHandler& handler,
                                                   const Published<PoolHealth>& health);
  virtual ~DraServer() = default;  // hangs up on everybody
  // Both are still at their places.
  virtual bool is_there() const = 0;
};

}  // namespace gpurota::kube
