// What became of a job that was just added, for whoever added it.
#pragma once

#include "base/result.h"
#include "client/connection.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

struct Begun {
  std::string text;     // "web: runs as L7 on GPU 0"
  bool failed = false;  // it could not be started
};

// Asks until it is known whether the job runs, and what it waits for else; at most two seconds.
Result<Begun> await_begin(client::Connection& connection, proto::Job job);

// What is known of it; `lease`: its own, if that is known.
Begun begun_of(const proto::Job& job, const proto::Lease* lease, WallTime now);

}  // namespace gpurota::cli
