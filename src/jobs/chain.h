// Chains: whether a job that waits for the end of others (--after-success, --after-end) goes on,
// by how far these are. Nothing is kept of it: a daemon that was killed decides the same again.
// Pure.
#pragma once

#include "jobs/job.h"

#include <optional>

namespace gpurota::jobs {

enum class Link { kSuccess, kEnd };

// How far a job is that others wait for.
struct Before {
  Phase phase = Phase::kStopped;
  bool ran = false;      // a run of it has ended
  bool removed = false;  // it goes as soon as its run is over
};

enum class Verdict { kMet, kWaits, kNever };
// `before`: nothing if there is no such job any more. One that was stopped and has never run may
// still be started, so it is waited for.
Verdict verdict_of(Link link, const std::optional<Before>& before);

}  // namespace gpurota::jobs
