// With strict access: the processes of a lease open the device files of its GPUs, and not those of
// another lease of the same user (docs/design/strict-access.md). The kernel holds it for the
// control groups of leases. State thread only.
#pragma once

#include "access/device_rights.h"
#include "daemon/leases/lease_manager.h"
#include "ports/processes.h"

#include <functional>
#include <map>
#include <string>

namespace gpurota::daemon {

class LeaseFences {
 public:
  // Both outlive it.
  LeaseFences(ports::Processes& processes, const LeaseManager& leases)
      : processes_(processes), leases_(leases) {}

  // Of each lease the fences around what is not its own.
  using FencesOf = std::function<DeviceFences(const Lease&)>;
  // Sets those that are not as they should be.
  void apply(const FencesOf& fences_of);
  // Takes all away, also those that an earlier daemon set.
  void lift();

  // Why processes of a lease can open what the rest of their user's processes can; empty: they
  // cannot, as far as is known.
  std::string trouble() const;

 private:
  void set(const std::string& cgroup, const DeviceFences& fences);

  ports::Processes& processes_;
  const LeaseManager& leases_;
  struct Fenced {
    DeviceFences fences;
    std::string trouble;  // why it is not; empty: it is
  };
  std::map<std::string, Fenced> set_;  // by control group
  std::string told_;                   // the last trouble that was logged
};

}  // namespace gpurota::daemon
