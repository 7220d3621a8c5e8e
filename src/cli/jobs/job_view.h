// The output of `gpurota job`, as text. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// A job with those of its items that are shown.
struct ListedJob {
  proto::Job job;
  std::vector<proto::JobItem> items{};
};
std::string jobs_text(const std::vector<ListedJob>& jobs, const Layout& layout, WallTime now);
std::string job_text(const ListedJob& listed_job, WallTime now);
// "waiting as R7, position 2: 1 of 2 GPUs free; …".
std::string state_text(const proto::Job& job, WallTime now);
// The number of all items.
int count_of(const proto::ItemCounts& items);
// "exited 3", "killed by signal 9", "stopped".
std::string run_text(const proto::JobRun& run);

}  // namespace gpurota::cli
