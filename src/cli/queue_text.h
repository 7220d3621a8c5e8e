// What `reserve`, `queue` and `explain` show, as text. Pure.
#pragma once

#include "cli/table.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// "0,2\n".
std::string short_text(const proto::Lease& lease);
// What to evaluate in a shell, with a comment that says what it is.
std::string reservation_text(const proto::Acquire::Reply& reply, WallTime now);
std::string queue_text(const proto::ListRequests::Reply& reply, const Look& look, WallTime now);

struct Explanation {
  std::optional<RequestId> request;
  std::optional<LeaseId> lease;  // neither: all that `uid` waits for and has
  uid_t uid = 0;
};
// kNotFound if there is no such request or lease.
Result<std::string> explain_text(const Explanation& what,
                                 const std::vector<proto::Request>& requests,
                                 const proto::Status::Reply& status,
                                 const proto::ListTurns::Reply& turns, WallTime now);

}  // namespace gpurota::cli
