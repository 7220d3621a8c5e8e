// The lease that the environment of `gpurota run` is of: of a reservation whose variables a shell
// has, or of a command around this one.
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

  // The lease's value of CUDA_VISIBLE_DEVICES.
  std::string visible_devices() const;
};

// Nothing: the environment is of no lease. An error: of one that is over, another one than it was,
// or another user's.
Result<std::optional<ShellLease>> find_shell_lease(client::Connection& connection,
                                                   const char* const* environment);

// "in L5 (GPU 0, 4 GiB)"; `ignored`: options of a new lease, which there is none for.
std::string shell_lease_text(const proto::Lease& lease, const std::vector<std::string>& ignored);

}  // namespace gpurota::cli
