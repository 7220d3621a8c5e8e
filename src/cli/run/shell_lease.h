// The lease in the environment of `gpurota run`: a reservation whose variables the shell has, or
// the lease of a command around this one.
#pragma once

#include "base/result.h"
#include "client/connection.h"
#include "proto/methods.h"

#include <optional>
#include <string>

namespace gpurota::cli {

struct ShellLease {
  LeaseId id;
  proto::GetEnvironment::Reply known;

  // The value of CUDA_VISIBLE_DEVICES in the lease.
  std::string visible_devices() const;
};

// Nothing: the environment has no lease. An error: its lease has ended, has been replaced by
// another with the same id, or is another user's.
Result<std::optional<ShellLease>> find_shell_lease(client::Connection& connection,
                                                   const char* const* environment);

// "in L5 (GPU 0, 4 GiB)"; `ignored`: options that only a new lease can have.
std::string shell_lease_text(const proto::Lease& lease, const std::vector<std::string>& ignored);

}  // namespace gpurota::cli
