// Finds the lease or request with the typed name.
#pragma once

#include "cli/args/args.h"
#include "cli/commands.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// Pure. The caller's own leases and requests come before those of others. Only administrators see
// the names of others' leases and requests. An error lists what could be meant.
Result<LeaseId> find_named(const std::vector<proto::Lease>& leases, const std::string& name,
                           uid_t mine);
Result<RequestId> find_named(const std::vector<proto::Request>& requests, const std::string& name,
                             uid_t mine);

// Replaces all names in the command by ids; asks the daemon only if there are names.
Result<void> find_all_named(const Context& context, Command& command);

}  // namespace gpurota::cli
