#include "cli/args/history_args.h"

namespace gpurota::cli {

Result<Command> history_command(const Raw& raw, const std::string& name) {
  if (name == "report") {
    if (raw.json && raw.csv) return fail(Code::kInvalid, "give --json or --csv, not both");
    ReportOptions report{raw.json, raw.csv, raw.days, raw.since, raw.by, {}};
    GPUROTA_ASSIGN_OR_RETURN(report.whose, whose_of(raw));
    return report;
  }
  if (name == "history") {
    if (raw.json && raw.steps) {
      return fail(Code::kInvalid, "--json has every step: leave --steps out");
    }
    HistoryOptions history{raw.json, raw.since, {}, std::nullopt, raw.steps};
    GPUROTA_ASSIGN_OR_RETURN(history.gpu_ids, split_ids(raw.gpu_ids));
    if (!raw.lease) return history;
    GPUROTA_ASSIGN_OR_RETURN(history.lease, lease_handle(*raw.lease));
    if (history.gpu_ids.empty()) return history;
    return fail(Code::kInvalid,
                "give --gpu-ids or --lease: GPUs and leases have figures of their own");
  }
  EventsOptions events{raw.json, raw.follow, raw.since, std::nullopt, std::nullopt, {}};
  GPUROTA_ASSIGN_OR_RETURN(events.whose, whose_of(raw));
  constexpr int kMostLines = 1000;  // in one answer
  GPUROTA_ASSIGN_OR_RETURN(events.lines, number_of("--lines", raw.lines, kMostLines));
  if (raw.lease) {
    GPUROTA_ASSIGN_OR_RETURN(events.lease, lease_handle(*raw.lease));
  }
  return events;
}

}  // namespace gpurota::cli
