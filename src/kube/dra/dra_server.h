// The DRA driver as kubelet sees it: two Unix sockets. With the first, kubelet finds the driver
// (plugins_registry); at the second it makes its calls. gRPC stays in the .cpp; gRPC's threads call
// the handler given here.
#pragma once

#include "kube/dra/claim.h"
#include "kube/dra/health.h"
#include "kube/published.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::kube {

// One lease of a prepared claim, with the devices for its containers.
struct PreparedLease {
  std::vector<ClaimDevice> devices;
  std::vector<std::string> cdi_devices;
};
using Prepared = std::vector<PreparedLease>;

// Answers kubelet's calls. Called on gRPC's threads, several at a time; each call returns by its
// deadline, if need be with kTimeout.
class ClaimHandler {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  virtual ~ClaimHandler() = default;
  virtual Result<Prepared> prepare(const ClaimId& claim, Deadline deadline) = 0;
  virtual Result<void> unprepare(const ClaimId& claim, Deadline deadline) = 0;
  // Kubelet has registered the driver (empty), or refused it for this reason.
  virtual void on_registration(const std::string& refusal) = 0;
};

// The health of a pool's devices, for kubelet.
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
  // Replaces whatever is at these sockets. `handler` and `health` must outlive the server. kIo if
  // it cannot listen there.
  static Result<std::unique_ptr<DraServer>> listen(const Sockets& sockets, ClaimHandler& handler,
                                                   const Published<PoolHealth>& health);
  virtual ~DraServer() = default;  // closes all connections
  // Whether both sockets still exist.
  virtual bool is_there() const = 0;
};

}  // namespace gpurota::kube
