// Handles of leases and requests on the command line: the id, or the name that the owner gave.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <string>

namespace gpurota::cli {

// As typed: the id, or a name. Of a name the id is known when find_named() has looked it up.
struct LeaseHandle : LeaseId {
  std::string name;
};
struct RequestHandle : RequestId {
  std::string name;
};

// Pure: an id ("12" and "l12" are plainly meant for L12), or something that can be a name.
Result<LeaseHandle> lease_handle(const std::string& text);
Result<RequestHandle> request_handle(const std::string& text);

// Of a word that is, or names, neither: where to look for what was meant.
Error neither_request_nor_lease(const std::string& word);

}  // namespace gpurota::cli
