// Handles of leases and requests on the command line: the id, or the owner's name for it.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <string>

namespace gpurota::cli {

// As typed: the id, or a name. The id of a name is known after find_named().
struct LeaseHandle : LeaseId {
  std::string name;
};
struct RequestHandle : RequestId {
  std::string name;
};

// Pure: an id ("12" and "l12" mean L12), or a valid name.
Result<LeaseHandle> lease_handle(const std::string& text);
Result<RequestHandle> request_handle(const std::string& text);

// The error for a word that matches neither a request nor a lease: says where to look.
Error neither_request_nor_lease(const std::string& word);

}  // namespace gpurota::cli
