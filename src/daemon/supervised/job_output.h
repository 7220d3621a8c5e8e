// Where the output of a job goes, as it is told in calls. Defined in job_methods.cpp; state thread only.
#pragma once

#include "base/result.h"
#include "jobs/job.h"
#include "keeper/journal.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

// Not told: a file. kUnavailable: the journal, where none runs.
Result<jobs::Output> output_of(const std::optional<std::string>& word);

}  // namespace gpurota::daemon
