// Which lease or request has the name that was typed.
#pragma once

#include "cli/args/args.h"
#include "cli/commands.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// Pure: one's own before others', whose names only administrators see. An error says which could be
// meant.
Result<LeaseId> find_named(const std::vector<proto::Lease>& leases, const std::string& name,
                           uid_t mine);
Result<RequestId> find_named(const std::vector<proto::Request>& requests, const std::string& name,
                             uid_t mine);

// Puts the ids of all names that the command has into it; asks the daemon only if there are any.
Result<void> find_all_named(const Context& context, Command& command);

}  // namespace gpurota::cli
