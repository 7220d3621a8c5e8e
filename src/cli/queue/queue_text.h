// The text of `reserve`, `queue` and `explain`. Pure.
#pragma once

#include "cli/args/of_host.h"
#include "cli/text/table.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// "0,2\n".
std::string short_text(const proto::Lease& lease);
// Describes a reservation and what can be done with it, for people.
std::string reservation_text(const proto::Lease& lease, WallTime now);
// Text for a shell to evaluate: one line without a comment, because in `eval $(…)` without quotes a
// comment would hide all that follows. The text replaces the variables that another lease has left
// in the shell, whose environment is `inherited`.
std::string export_text(const proto::Acquire::Reply& reply, const char* const* inherited);
// The same for any variables; variables in `cleared` that are not among them are unset.
std::string export_text(const std::vector<proto::Variable>& variables,
                        const std::vector<std::string>& cleared);
// The wish of a request as text: "2 x 8 GiB in turns".
std::string wish_text(const proto::Request& request);
std::string queue_text(const proto::ListRequests::Reply& reply, const Layout& layout, WallTime now);
// For several machines: in their order, with their names in the first column.
std::string hosts_queue_text(const std::vector<OfHost<proto::ListRequests>>& hosts,
                             const Layout& layout, WallTime now);

// The subject to explain: a waiting request or a booking (`request`), or a lease. If both are
// empty: all requests, bookings and leases of `uid`.
struct Explanation {
  std::optional<RequestId> request;
  std::optional<LeaseId> lease;
  uid_t uid = 0;
};
// Only what the question is about: its requests, leases, and the GPUs where they take turns.
struct Explained {
  proto::ListRequests::Reply requests;
  proto::Status::Reply status;
  proto::ListTurns::Reply turns;
  // Changes that would let the requests start now; empty until they are requested.
  proto::FindAlternatives::Reply alternatives{};
};
// kNotFound if there is no such request or lease.
Result<Explained> explained(const Explanation& what, const std::vector<proto::Request>& requests,
                            const proto::Status::Reply& status,
                            const proto::ListTurns::Reply& turns);
std::string explained_json(const Explained& what);
// `requests`: those of all users, because some may wait for the leases in `what`.
std::string explain_text(const Explained& what, const std::vector<proto::Request>& requests,
                         uid_t reader, WallTime now);
// How an ended lease ended; empty: the events do not say.
std::string ended_text(LeaseId lease, const std::vector<proto::Event>& events, WallTime now);

}  // namespace gpurota::cli
