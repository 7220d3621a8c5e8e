// Chains: whether a job that waits for other jobs to end (--after-success, --after-end) starts,
// waits or is cancelled. Only the states of the other jobs decide, and nothing else is stored, so
// that after a kill -9 the next daemon decides the same. Pure.
#pragma once

#include "jobs/job.h"

#include <optional>

namespace gpurota::jobs {

enum class Link { kSuccess, kEnd };

// The state of a job that others wait for.
struct Before {
  Phase phase = Phase::kStopped;
  bool ran = false;      // a run of it has ended
  bool removed = false;  // the job is dropped as soon as its run is over
};

enum class Verdict { kMet, kWaits, kNever };
// `before`: nothing if the job is no longer there. A job that was stopped and has never run may
// still be started, so others continue to wait for it.
Verdict verdict_of(Link link, const std::optional<Before>& before);

}  // namespace gpurota::jobs
