// For strict access: the processes of a lease can open the device files of the lease's GPUs, and
// not those of another lease of the same user (docs/design/strict-access.md). The kernel enforces
// the fences for the control groups of leases. State thread only.
#pragma once

#include "access/device_rights.h"
#include "daemon/leases/lease_tables.h"
#include "ports/processes.h"

#include <functional>
#include <map>
#include <string>

namespace gpurota::daemon {

class LeaseFences {
 public:
  // Both must outlive the LeaseFences.
  LeaseFences(ports::Processes& processes, const LeaseTables& tables)
      : processes_(processes), tables_(tables) {}

  // Returns the fences of a lease: the devices that its processes must not open.
  using FencesOf = std::function<DeviceFences(const Lease&)>;
  // Sets the fences that are not as they should be.
  void apply(const FencesOf& fences_of);
  // Removes all fences, even those that an earlier daemon set.
  void lift();

  // Why processes of a lease can open device files of their user's other leases. Empty: no such
  // problem is known.
  std::string trouble() const;

 private:
  void set(const std::string& cgroup, const DeviceFences& fences);

  ports::Processes& processes_;
  const LeaseTables& tables_;
  struct Fenced {
    DeviceFences fences;
    std::string trouble;  // why the fences are not set; empty: they are
  };
  std::map<std::string, Fenced> set_;  // by control group
  std::string told_;                   // the last trouble that was logged
};

}  // namespace gpurota::daemon
