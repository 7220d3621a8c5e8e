// The users whose leases and requests are shown: --me and --user of status, queue, report and
// events.
#pragma once

#include "base/result.h"
#include "cli/args/option_parser.h"
#include "proto/methods.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::cli {

struct Whose {
  bool me = false;
  std::optional<std::string> user;  // a name or a uid; at most one of the two; neither: everybody

  bool everybody() const { return !me && !user; }
};

// Parses --me and --user.
Result<Whose> whose_of(const Raw& raw);
// Nothing: everybody. Looks up the account. kNotFound.
Result<std::optional<uid_t>> uid_of(const Whose& whose);
// "you have", "alice has".
std::string has_text(const Whose& whose);

// Keeps only what concerns this user. Pure. In a status: the user's leases and bookings, their
// GPUs, and findings about the user or these GPUs. The number of waiting requests is then unknown.
void keep_only(proto::Status::Reply& reply, uid_t uid);
void keep_only(proto::ListRequests::Reply& reply, uid_t uid);

}  // namespace gpurota::cli
