// Finds the lease or request with the typed name.
#pragma once

#include "cli/args/args.h"
#include "cli/commands.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// Pure. The caller's own come before those of others, whose names only administrators see. An error
// lists what could be meant.
Result<LeaseId> find_named(const std::vector<proto::Lease>& leases, const std::string& name,
                           uid_t mine);
Result<RequestId> find_named(const std::vector<proto::Request>& requests, const std::string& name,
                             uid_t mine);

// Replaces all names in the command by ids; asks the daemon only if there are names.
Result<void> find_all_named(const Context& context, Command& command);

}  // namespace gpurota::cli
