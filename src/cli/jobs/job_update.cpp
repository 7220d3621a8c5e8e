#include "cli/jobs/job_update.h"

#include "cli/args/args.h"
#include "cli/args/job_args.h"
#include "cli/queue/waiting.h"

namespace gpurota::cli {

Result<ChangedOptions> change_options(const std::vector<std::string>& before,
                                      const std::vector<std::string>& change) {
  GPUROTA_ASSIGN_OR_RETURN(const auto old_words, split_run_words(before));
  GPUROTA_ASSIGN_OR_RETURN(const auto new_words, split_run_words(change));
  ChangedOptions out;
  proto::UpdateJob& call = out.call;
  call.options = merge_run_words(old_words, new_words);
  GPUROTA_ASSIGN_OR_RETURN(const RunOptions run, parse_run_words(*call.options));
  for (const RunWord& word : new_words) {
    bool now = true;
    if (word.name == "--memory") {
      call.memory = run.memory;
    } else if (word.name == "--soft-limit") {
      call.soft_limit = run.soft_limit;
    } else if (word.name == "--note") {
      call.note = run.note;
    } else if (word.name == "--timeout" && run.lasts) {
      call.seconds = run.lasts->count();
    } else if (word.name == "--priority") {
      call.priority = run.priority;
    } else if (word.name == "--quantum") {
      call.quantum = run.quantum;
    } else if (word.name == "--latency") {
      call.latency = to_string(*run.latency);
    } else if (word.name == "--compute") {
      call.compute_percent = run.compute;
    } else if (word.name == "--compute-max") {
      call.compute_max_percent = run.compute_max;
    } else if (word.name == "--warn" && run.warning) {
      set_warning(call, *run.warning);
    } else {
      now = false;
    }
    (now ? out.now : out.later) = true;
  }
  return out;
}

}  // namespace gpurota::cli
