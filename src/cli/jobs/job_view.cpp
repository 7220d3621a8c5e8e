#include "cli/jobs/job_view.h"

#include "base/text.h"
#include "cli/args/since.h"
#include "cli/text/time_text.h"
#include "client/reason_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace gpurota::cli {
namespace {

Colour colour_of(const std::string& state) {
  if (state == "running") return Colour::kGreen;
  if (state == "failed" || state == "backing-off" || state == "cancelled") return Colour::kRed;
  return state == "waiting" || state == "stopping" ? Colour::kYellow : Colour::kNone;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string state_of(const proto::Job& job) {
  return job.position ? fmt::format("{} ({})", job.state, *job.position) : job.state;
}

// While it waits that is what its owner wants to know, and of one that never starts why.
std::string what_of(const proto::Job& job, WallTime now) {
  const bool waits = job.position || job.state == "waiting" || job.state == "cancelled";
  if (waits && job.detail) return client::reason_with_remedy(job, now);
  return job.runs.empty() ? "-" : run_text(job.runs.back());
}

std::string listed(const std::optional<std::vector<std::string>>& names) {
  std::string text;
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string time_text(WallTime time) { return local_time(time, "%F %H:%M:%S"); }

// "2026-11-23 09:18:44 to 2026-11-23 09:18:46 (2 s, at most 3 GiB): exited 0".
std::string past_run_text(const proto::JobRun& run) {
  if (!run.started) return fmt::format("never to {}: {}", time_text(run.ended), run_text(run));
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(run.ended - *run.started);
  std::string text = fmt::format("{} to {} ({}", time_text(*run.started), time_text(run.ended),
                                 duration_text(std::max(took, std::chrono::seconds(0))));
  if (run.max_used_bytes) text += ", at most " + to_string(*run.max_used_bytes);
  return text + "): " + run_text(run);
}

void add_line(std::string& text, const char* title, const std::string& value) {
  if (!value.empty()) text += fmt::format("{:<10} {}\n", title, display_text(value, 2000));
}

}  // namespace

std::string run_text(const proto::JobRun& run) {
  std::string text = run.reason;
  if (run.reason == "exited") text = fmt::format("exited {}", run.code);
  if (run.reason == "signalled") text = fmt::format("killed by signal {}", run.code);
  if (run.detail) text += ": " + display_text(*run.detail, 200);
  return text;
}

std::string jobs_text(const std::vector<proto::Job>& jobs, const Layout& layout, WallTime now) {
  if (jobs.empty()) return "no jobs\n";
  Table table({{"NAME"},
               {"USER"},
               {"STATE"},
               {"LEASE"},
               {"WAITS FOR, OR LAST RUN", false, 12},
               {"COMMAND", false, 20}});
  for (const proto::Job& job : jobs) {
    table.add({{job.name},
               {job.user},
               {state_of(job), colour_of(job.state)},
               {job.lease_id ? to_string(*job.lease_id) : "-"},
               {what_of(job, now), Colour::kNone},
               {display_command(job.command, 200)}});
  }
  return table.render(layout);
}

std::string state_text(const proto::Job& job, WallTime now) {
  std::string text = job.state;
  if (job.request_id && job.position) {
    text += fmt::format(" as {}, position {}", to_string(*job.request_id), *job.position);
  }
  return job.detail ? text + ": " + client::reason_with_remedy(job, now) : text;
}

std::string job_text(const proto::Job& job, WallTime now) {
  std::string text;
  add_line(text, "name", job.name);
  add_line(text, "user", job.user);
  add_line(text, "state", state_text(job, now));
  if (job.since) add_line(text, "since", time_text(*job.since));
  if (job.lease_id) add_line(text, "lease", to_string(*job.lease_id));
  add_line(text, "command", display_command(job.command, 2000));
  add_line(text, "options", display_command(job.options, 2000));
  add_line(text, "workdir", job.workdir);
  add_line(text, "variables", joined(job.variables));
  add_line(text, "restart", job.restart);
  add_line(text, "boot after", listed(job.after));
  if (job.after_success) add_line(text, "after", "the success of " + listed(job.after_success));
  if (job.after_end) add_line(text, "after", "the end of " + listed(job.after_end));
  if (job.output == "journal") add_line(text, "output", *job.output);
  if (job.tty.value_or(false)) add_line(text, "output", "a terminal");
  if (job.max_used_bytes) {
    add_line(text, "used", fmt::format("at most {} so far", to_string(*job.max_used_bytes)));
  }
  if (job.failures > 0) add_line(text, "failures", fmt::format("{} in a row", job.failures));
  for (const proto::JobRun& run : job.runs) {
    add_line(text, "run", past_run_text(run));
  }
  return text;
}

}  // namespace gpurota::cli
