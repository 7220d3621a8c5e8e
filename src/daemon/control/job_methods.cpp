#include "daemon/control/job_methods.h"

#include "base/text.h"
#include "daemon/control/calls.h"
#include "daemon/control/program_calls.h"
#include "daemon/control/program_deeds.h"
#include "daemon/supervised/jobs.h"
#include "keeper/launcher.h"
#include "lease/allowance.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {

Result<jobs::Output> output_of(const std::optional<std::string>& word) {
  if (!word) return jobs::Output::kFile;
  const auto output = jobs::parse_output(*word);
  if (!output)
    return fail(Code::kInvalid, "the output of a job goes to a 'file' or to the 'journal'");
  if (*output == jobs::Output::kJournal) GPUROTA_TRY(keeper::check_journal());
  return *output;
}

Result<jobs::RestartPolicy> restart_of(const std::string& word) {
  const auto restart = jobs::parse_restart_policy(word);
  if (restart) return *restart;
  return fail(Code::kInvalid, "a job is restarted 'no', 'on-failure' or 'always'");
}

Meant meant_by(const CallContext& parts, const Caller& caller, const char* what,
               const std::optional<std::string>& name, const std::optional<std::string>& user) {
  return {what,
          name.value_or(""),
          user,
          caller.uid,
          parts.views.user_name(caller.uid),
          parts.views.is_administrator(caller.uid),
          [&users = parts.users](const std::string& who) { return users.may_exist(who); }};
}

namespace {

std::optional<std::string> text_or_nothing(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<jobs::JobSpec> job_spec_of(const proto::AddJob& call) {
  jobs::JobSpec spec = spec_of_program(call);
  spec.options = call.options;
  GPUROTA_ASSIGN_OR_RETURN(spec.restart, restart_of(call.restart.value_or("no")));
  spec.after = call.after.value_or(std::vector<std::string>());
  spec.after_success = call.after_success.value_or(std::vector<std::string>());
  spec.after_end = call.after_end.value_or(std::vector<std::string>());
  spec.tty = call.tty.value_or(false);
  GPUROTA_ASSIGN_OR_RETURN(spec.output, output_of(call.output));
  GPUROTA_TRY(take_array(call, spec));
  return spec;
}

// `Shown`: Job or JobItem.
template <class Shown>
void describe_runs(const jobs::JobState& state, Shown& shown) {
  for (const jobs::RunEnd& end : state.history) {
    shown.runs.push_back({end.started, end.ended, jobs::to_string(end.reason), end.code,
                          text_or_nothing(end.detail), end.most_used});
  }
}

// A job whose request waits in the queue is shown as waiting, like any other request.
template <class Shown>
void describe_request(const QueueEntry& request, WallTime now, Shown& shown) {
  shown.state = jobs::to_string(jobs::Phase::kWaiting);
  shown.since = request.since;
  shown.request_id = request.id;
  shown.position = request.waiting.position;
  shown.detail = reason_text(request.reason, now);
}

std::optional<std::string> pause_text(const JobEntry& job, WallTime now) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(job.next_time - now);
  return "starts again in " + lease::duration_text(std::max(left, std::chrono::seconds(0)));
}

int number(std::size_t count) { return static_cast<int>(count); }

Error no_item(const JobEntry& array, std::int64_t index) {
  if (!array.spec.is_array()) {
    return {Code::kInvalid, 0, fmt::format("job {} has no items: it is no array", array.spec.name)};
  }
  return {Code::kNotFound, 0,
          fmt::format("job {} has no item {}: its items are {}", array.spec.name, index,
                      display_text(to_string(array.spec.array), 200))};
}

}  // namespace

struct JobMethods::Wanted {
  Jobs::What what;
  const char* did;
};

Result<JobMethods::Wanted> JobMethods::wanted_of(const std::string& action) {
  if (action == "start") return Wanted{Jobs::What::kStart, "started"};
  if (action == "stop") return Wanted{Jobs::What::kStop, "stopped"};
  if (action == "restart") return Wanted{Jobs::What::kRestart, "restarted"};
  if (action == "remove") return Wanted{Jobs::What::kRemove, "removed"};
  return fail(Code::kInvalid, "a job can be started, stopped, restarted or removed");
}

proto::Job JobMethods::describe_job(const JobEntry& job) const {
  const jobs::JobState& state = job.life.state();
  proto::Job shown;
  describe_program(job, shown);
  shown.state = jobs::to_string(state.phase);
  shown.detail = text_or_nothing(state.end_detail);
  if (state.phase == jobs::Phase::kRunning && state.asking) shown.detail = "it is just starting";
  if (state.phase == jobs::Phase::kBackingOff) {
    shown.detail = pause_text(job, parts_.wall_clock());
  }
  // A chained job is shown as waiting; `detail` says for which jobs.
  if (state.phase == jobs::Phase::kChained) {
    shown.state = jobs::to_string(jobs::Phase::kWaiting);
    shown.detail = chain_of(parts_.jobs.entries(), job.uid, job.spec).text;
  }
  shown.options = job.spec.options;
  shown.restart = jobs::to_string(job.spec.restart);
  shown.output = jobs::to_string(job.spec.output);
  shown.after = job.spec.after;
  if (!job.spec.after_success.empty()) shown.after_success = job.spec.after_success;
  if (!job.spec.after_end.empty()) shown.after_end = job.spec.after_end;
  if (job.spec.tty) shown.tty = true;
  shown.since = state.started;
  shown.max_used_bytes = state.most_used;
  shown.failures = state.failures;
  describe_runs(state, shown);
  if (job.spec.is_array()) describe_array(job, shown);
  if (job.lease && parts_.tables.find(*job.lease)) shown.lease_id = job.lease;
  // An array is shown as waiting in the queue as long as none of its items runs.
  const JobEntry* const asking = job.spec.is_array() ? parts_.jobs.items().asking_of(job) : &job;
  const QueueEntry* const request =
      asking && job.items.on().size() <= 1 ? request_of(*asking) : nullptr;
  if (request) {
    describe_request(*request, parts_.wall_clock(), shown);
    shown.wait_reason = parts_.views.wait_reason(*request, job.uid);
  }
  return shown;
}

const QueueEntry* JobMethods::request_of(const JobEntry& job) const {
  const jobs::JobState& state = job.life.state();
  if (state.phase != jobs::Phase::kRunning || !state.asking) return nullptr;
  for (const QueueEntry& entry : parts_.tables.requests) {
    if (entry.asked.uid != job.uid || entry.asked.kind != LeaseKind::kJob) continue;
    if (parts_.jobs.job_of(entry.holder.id) == &job) return &entry;
  }
  return nullptr;
}

void JobMethods::describe_array(const JobEntry& job, proto::Job& shown) const {
  const jobs::ItemCounts counts = parts_.jobs.items().count(job);
  shown.array = to_string(job.spec.array);
  shown.at_once = job.spec.at_once;
  shown.items =
      proto::ItemCounts{number(counts.running), number(counts.done),      number(counts.failed),
                        number(counts.unknown), number(counts.cancelled), number(counts.waiting)};
  if (job.life.state().phase == jobs::Phase::kChained) return;
  if (job.put_off) shown.detail = "the next item waits: " + job.put_off->why;
  // The counts are in `detail` as well, for clients that do not know arrays.
  shown.detail = items_text(counts) + (shown.detail ? ": " + *shown.detail : "");
}

proto::JobItem JobMethods::describe_item(const JobEntry& array, std::int64_t index) const {
  proto::JobItem shown;
  shown.index = static_cast<int>(index);
  shown.state = jobs::to_string(array.items.kind(index));
  if (!array.spec.each.empty()) {
    shown.command = array.spec.each.at(static_cast<std::size_t>(index) - 1);
  }
  const JobEntry* const item = parts_.jobs.items().find(array, index);
  const jobs::JobState* const state = item ? &item->life.state() : array.items.state_of(index);
  if (state == nullptr) return shown;
  shown.detail = text_or_nothing(state->end_detail);
  describe_runs(*state, shown);
  if (item == nullptr) return shown;
  shown.state = jobs::to_string(state->phase);
  shown.since = state->started;
  shown.max_used_bytes = state->most_used;
  if (item->lease && parts_.tables.find(*item->lease)) shown.lease_id = item->lease;
  if (state->phase == jobs::Phase::kBackingOff) {
    shown.detail = pause_text(*item, parts_.wall_clock());
  }
  if (state->asking && state->phase == jobs::Phase::kRunning) shown.detail = "it is just starting";
  if (const QueueEntry* const request = request_of(*item)) {
    describe_request(*request, parts_.wall_clock(), shown);
  }
  return shown;
}

Result<const JobEntry*> JobMethods::own_job(const Caller& caller, const std::string& name,
                                            const std::optional<std::string>& user) const {
  return find_meant(parts_.jobs.entries(), meant_by(parts_, caller, "job", name, user));
}

Outcome JobMethods::on(const Caller& caller, const proto::AddJob& call) {
  auto spec = job_spec_of(call);
  if (!spec) return refused(spec.error());
  const auto added = parts_.jobs.add(caller.uid, std::move(*spec));
  if (!added) return refused(added.error());
  return replied<proto::AddJob>({describe_job(**added)});
}

Outcome JobMethods::on(const Caller& caller, const proto::ListJobs& call) {
  proto::ListJobs::Reply reply;
  const auto listed =
      for_all_meant(parts_.jobs.entries(), meant_by(parts_, caller, "job", call.name, call.user),
                    [&](const JobEntry& job) {
                      // The job was removed, but its row in the store could not be removed yet.
                      if (job.is_removed() && !parts_.jobs.is_on(job)) return false;
                      reply.jobs.push_back(describe_job(job));
                      return true;
                    });
  if (!listed) return refused(listed.error());
  return replied<proto::ListJobs>(reply);
}

Outcome JobMethods::on(const Caller& caller, const proto::ListJobItems& call) {
  constexpr int kMost = 256;
  const auto job = own_job(caller, call.name, call.user);
  if (!job) return refused(job.error());
  const JobEntry& array = **job;
  if (!array.spec.is_array()) return refused(no_item(array, 0));
  const int most = std::clamp(call.most.value_or(kMost), 1, kMost);
  const bool begun = call.begun.value_or(false);
  proto::ListJobItems::Reply reply;
  auto index = array.items.indices().from(call.from.value_or(0));
  while (index && number(reply.items.size()) < most) {
    const bool known = array.items.on().contains(*index) || array.items.state_of(*index);
    if (known || !begun) reply.items.push_back(describe_item(array, *index));
    index = array.items.indices().from(*index + 1);
  }
  if (index) reply.next = static_cast<int>(*index);
  return replied<proto::ListJobItems>(reply);
}

Outcome JobMethods::control_array(const Caller& caller, const proto::ControlJob& call) {
  const auto wanted = wanted_of(call.action);
  if (!wanted) return refused(wanted.error());
  if (call.others) {
    return refused({Code::kInvalid, 0, "items of one array at a time: name one job"});
  }
  const auto job = own_job(caller, call.name, call.user);
  if (!job) return refused(job.error());
  const JobEntry& array = **job;
  const ProgramDeed deed(parts_, caller.uid, "job", array, call.reason);
  if (!call.item) {
    if (wanted->what != Jobs::What::kRestart) {
      return refused({Code::kInvalid, 0, "only restart is for the items that did not end well"});
    }
    const auto done = parts_.jobs.items().retry(array.id);
    if (!done) return refused(done.error());
    deed.tell("restarted items of", NoticeKind::kReleased);
    return replied<proto::ControlJob>({});
  }
  if (!array.items.indices().has(*call.item)) return refused(no_item(array, *call.item));
  if (wanted->what == Jobs::What::kRemove) {
    return refused(
        {Code::kInvalid, 0, "an item cannot be removed: stop it, or remove the whole array"});
  }
  const auto what = wanted->what == Jobs::What::kStart  ? JobItems::What::kStart
                    : wanted->what == Jobs::What::kStop ? JobItems::What::kStop
                                                        : JobItems::What::kRestart;
  const auto done = parts_.jobs.items().control(array.id, *call.item, what, deed.by());
  if (!done) return refused(done.error());
  deed.tell(fmt::format("{} item {} of", wanted->did, *call.item),
            wanted->what == Jobs::What::kStart ? NoticeKind::kChanged : NoticeKind::kReleased);
  return replied<proto::ControlJob>({});
}

Outcome JobMethods::on(const Caller& caller, const proto::ControlJob& call) {
  if (call.item || call.unfinished.value_or(false)) return control_array(caller, call);
  const auto wanted = wanted_of(call.action);
  if (!wanted) return refused(wanted.error());
  const auto ids = jobs_in(caller, call);
  if (!ids) return refused(ids.error());
  if (wanted->what == Jobs::What::kRemove && !call.force.value_or(false)) {
    const JobEntries& entries = parts_.jobs.entries();
    for (const std::uint64_t id : *ids) {
      const JobEntry& job = entries.at(id);
      const auto may = check_removal(entries, job, parts_.jobs.is_on(job), *ids);
      if (!may) return refused(may.error());
    }
  }
  for (const std::uint64_t id : *ids) {
    const auto done = control(caller, id, *wanted, call.reason);
    if (!done) return refused(done.error());
  }
  return replied<proto::ControlJob>({});
}

Result<std::vector<std::uint64_t>> JobMethods::jobs_in(const Caller& caller,
                                                       const proto::ControlJob& call) const {
  std::vector<std::string> names = {call.name};
  if (call.others) names.insert(names.end(), call.others->begin(), call.others->end());
  if (names.size() > kMostJobs) {
    return fail(Code::kLimit,
                fmt::format("name at most {} jobs at once, these are {}", kMostJobs, names.size()));
  }
  std::vector<std::uint64_t> ids;
  for (const std::string& name : names) {
    GPUROTA_ASSIGN_OR_RETURN(const JobEntry* const job, own_job(caller, name, call.user));
    if (std::find(ids.begin(), ids.end(), job->id) == ids.end()) ids.push_back(job->id);
  }
  return ids;
}

Result<void> JobMethods::control(const Caller& caller, std::uint64_t id, const Wanted& wanted,
                                 const std::optional<std::string>& reason) {
  const auto entry = parts_.jobs.entries().find(id);
  // The job was removed together with an earlier one of these jobs.
  if (entry == parts_.jobs.entries().end()) return {};
  const JobEntry& job = entry->second;
  const ProgramDeed deed(parts_, caller.uid, "job", job, reason);
  const jobs::Phase before = job.life.state().phase;
  const bool was_to_return = job.life.state().start_again;
  const auto request = describe_job(job).request_id;
  const auto done = parts_.jobs.control(id, wanted.what, deed.by());
  const auto now = parts_.jobs.entries().find(id);
  const jobs::JobState* const state =
      now == parts_.jobs.entries().end() ? nullptr : &now->second.life.state();
  // Cancel the request with the reason. A request that is not cancelled here ends with its process,
  // without a reason.
  if (request && state && state->phase == jobs::Phase::kStopping) {
    parts_.queue.leave(*request, Error{Code::kGone, 0, stopping_text(now->second)});
  }
  if (!done) return done;
  // Stopping a stopped job changes nothing, so nobody is notified.
  const bool changed = wanted.what == Jobs::What::kRemove || !state || state->phase != before ||
                       state->start_again != was_to_return;
  if (changed) {
    deed.tell(wanted.did,
              wanted.what == Jobs::What::kStart ? NoticeKind::kChanged : NoticeKind::kReleased);
  }
  return {};
}

Outcome JobMethods::on(const Caller& caller, const proto::ReadJobLog& call) {
  const auto job = own_job(caller, call.name, call.user);
  if (!job) return refused(job.error());
  if ((*job)->spec.output == jobs::Output::kJournal) {
    return refused({Code::kUnavailable, 0,
                    fmt::format("its output goes to the journal: journalctl -t {} _UID={}",
                                keeper::journal_name((*job)->spec.name), (*job)->uid)});
  }
  std::optional<jobs::LogCursor> from;
  if (call.cursor && !(from = jobs::parse_log_cursor(*call.cursor))) {
    return refused({Code::kInvalid, 0, "this is not a valid position in a log"});
  }
  std::uint64_t run = (*job)->id;
  if (call.item) {
    if (!(*job)->items.indices().has(*call.item)) {
      return refused(no_item(**job, *call.item));
    }
    run = run_of(run, *call.item);
  } else if ((*job)->spec.is_array()) {
    return refused({Code::kInvalid, 0,
                    fmt::format("each item of an array has a log of its own: 'gpurota job logs "
                                "{}[{}]' shows that of the first",
                                call.name, *(*job)->items.indices().from(0))});
  }
  Outcome outcome;
  outcome.on_worker = [folder = parts_.jobs.log_folder(run), from, most = log_bytes(call.bytes)] {
    const auto part = keeper::read_log(folder, from, most);
    if (!part) return proto::error_json(proto::wire_error(part.error()));
    return proto::reply_json<proto::ReadJobLog>({part->text, to_string(part->next), part->missed});
  };
  return outcome;
}

}  // namespace gpurota::daemon
