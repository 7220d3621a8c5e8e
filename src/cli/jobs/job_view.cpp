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
  if (state == "failed" || state == "backing-off" || state == "cancelled" || state == "unknown")
    return Colour::kRed;
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

// The text of the last column: why the job waits, or why it never starts; otherwise how its last
// run ended.
std::string what_of(const proto::Job& job, WallTime now) {
  const bool waits = job.position || job.state == "waiting" || job.state == "cancelled";
  if (waits && job.detail) return client::reason_with_remedy(job, now);
  if (job.items && job.detail) return display_text(*job.detail, 200);
  return job.runs.empty() ? "-" : run_text(job.runs.back());
}

std::string what_of(const proto::JobItem& item) {
  const bool waits = item.position || item.state == "waiting" || item.runs.empty();
  if (waits && item.detail) return display_text(*item.detail, 200);
  return item.runs.empty() ? "-" : run_text(item.runs.back());
}

// The command of a job. If each item of an array has a command of its own: the number of commands.
std::string command_of(const proto::Job& job) {
  if (!job.command.empty() || !job.items) return display_command(job.command, 200);
  return fmt::format("{} commands", count_of(*job.items));
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

// "7 failed: 2026-11-23 09:18:44 to … (2 s): exited 3, 2 runs".
std::string item_text(const proto::JobItem& item) {
  std::string text = fmt::format("{} {}", item.index, item.state);
  const bool ended = item.state == "done" || item.state == "failed" || item.state == "unknown";
  if (item.lease_id) text += " as " + to_string(*item.lease_id);
  if (item.since) text += " since " + time_text(*item.since);
  if (item.max_used_bytes)
    text += fmt::format(", at most {} so far", to_string(*item.max_used_bytes));
  if (!ended && item.detail) text += ": " + display_text(*item.detail, 200);
  if (item.runs.empty()) return text;
  text += (ended ? ": " : "; the last run: ") + past_run_text(item.runs.back());
  if (item.runs.size() > 1) text += fmt::format("; {} runs", item.runs.size());
  return text;
}

void add_line(std::string& text, const char* title, const std::string& value) {
  if (!value.empty()) text += fmt::format("{:<10} {}\n", title, display_text(value, 2000));
}

}  // namespace

int count_of(const proto::ItemCounts& items) {
  return items.running + items.done + items.failed + items.unknown + items.cancelled +
         items.waiting;
}

std::string run_text(const proto::JobRun& run) {
  std::string text = run.reason;
  if (run.reason == "exited") text = fmt::format("exited {}", run.code);
  if (run.reason == "signalled") text = fmt::format("killed by signal {}", run.code);
  if (run.detail) text += ": " + display_text(*run.detail, 200);
  return text;
}

std::string jobs_text(const std::vector<ListedJob>& jobs, const Layout& layout, WallTime now) {
  if (jobs.empty()) return "no jobs\n";
  Table table({{"NAME"},
               {"USER"},
               {"STATE"},
               {"LEASE"},
               {"WAITS FOR, OR LAST RUN", false, 12},
               {"COMMAND", false, 20}});
  for (const auto& [job, items] : jobs) {
    const std::string command = command_of(job);
    table.add({{job.name},
               {job.user},
               {state_of(job), colour_of(job.state)},
               {job.lease_id ? to_string(*job.lease_id) : "-"},
               {what_of(job, now), Colour::kNone},
               {command}});
    for (const proto::JobItem& item : items) {
      table.add({{fmt::format("{}[{}]", job.name, item.index)},
                 {job.user},
                 {item.position ? fmt::format("{} ({})", item.state, *item.position) : item.state,
                  colour_of(item.state)},
                 {item.lease_id ? to_string(*item.lease_id) : "-"},
                 {what_of(item), Colour::kNone},
                 {item.command ? display_command(*item.command, 200) : command}});
    }
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

std::string job_text(const ListedJob& listed_job, WallTime now) {
  const proto::Job& job = listed_job.job;
  std::string text;
  add_line(text, "name", job.name);
  add_line(text, "user", job.user);
  add_line(text, "state", state_text(job, now));
  if (job.since) add_line(text, "since", time_text(*job.since));
  if (job.lease_id) add_line(text, "lease", to_string(*job.lease_id));
  if (job.array) {
    add_line(text, "array",
             fmt::format("{}, at most {} at once", *job.array, job.at_once.value_or(1)));
  }
  add_line(text, "command",
           job.command.empty() ? command_of(job) : display_command(job.command, 2000));
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
  for (const proto::JobItem& item : listed_job.items) add_line(text, "item", item_text(item));
  return text;
}

}  // namespace gpurota::cli
