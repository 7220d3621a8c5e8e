// Says what became of a job that was just added.
#pragma once

#include "base/result.h"
#include "client/connection.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

struct Begun {
  std::string text;     // "web: runs as L7 on GPU 0"
  bool failed = false;  // the job could not be started
};

// Asks until the daemon knows whether the job runs, or what it waits for; at most two seconds.
Result<Begun> await_begin(client::Connection& connection, proto::Job job);

// The state of the job in words. `lease`: the lease of the job, if that is known.
Begun begun_of(const proto::Job& job, const proto::Lease* lease, WallTime now);

}  // namespace gpurota::cli
