#include "cli/args/update_args.h"

#include "cli/args/turns_args.h"

namespace gpurota::cli {

Result<Command> update_command(const Raw& raw) {
  if (raw.positional.empty()) {
    return fail(Code::kInvalid, "which lease? For instance: gpurota update L12 --memory 12G");
  }
  UpdateOptions update;
  GPUROTA_ASSIGN_OR_RETURN(update.lease, lease_handle(raw.positional.front()));
  GPUROTA_ASSIGN_OR_RETURN(update.memory, size_of("--memory", raw.memory));
  GPUROTA_ASSIGN_OR_RETURN(update.soft_limit, size_of("--soft-limit", raw.soft_limit));
  update.note = raw.note;
  GPUROTA_ASSIGN_OR_RETURN(update.lasts, time_of("--for", raw.for_));
  update.until = raw.until;
  if (update.until && update.lasts) {
    return fail(Code::kInvalid, "--until and --for both say when it ends: give one of them");
  }
  GPUROTA_ASSIGN_OR_RETURN(update.priority, priority_of(raw.priority));
  update.quantum = raw.quantum;
  update.latency = latency_of(raw.latency);
  GPUROTA_ASSIGN_OR_RETURN(update.compute, compute_of(raw.compute));
  GPUROTA_ASSIGN_OR_RETURN(update.compute_max, compute_max_of(raw.compute_max));
  GPUROTA_ASSIGN_OR_RETURN(update.warning, warning_of(raw.warn));
  update.reason = raw.reason;
  if (!update.memory && !update.soft_limit && !update.note && !update.lasts && !update.until &&
      !update.priority && !update.quantum && !update.latency && !update.compute &&
      !update.compute_max && !update.warning) {
    return fail(
        Code::kInvalid,
        "nothing to change: give --memory, --soft-limit, --for, --until, --latency, --compute, "
        "--compute-max, --priority, --quantum, --warn or --note");
  }
  return update;
}

}  // namespace gpurota::cli
