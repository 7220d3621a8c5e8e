#include "daemon/control/job_change_methods.h"

#include "daemon/control/calls.h"
#include "daemon/control/program_calls.h"
#include "daemon/control/program_deeds.h"
#include "daemon/leases/turn_wishes.h"
#include "daemon/supervised/jobs.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

const std::string* value_of(const Environment& environment, const std::string& name) {
  const auto found = std::find_if(environment.begin(), environment.end(),
                                  [&name](const auto& each) { return each.first == name; });
  return found == environment.end() ? nullptr : &found->second;
}

void set_value(Environment& environment, const std::string& name, const std::string& value) {
  for (auto& [each, old] : environment) {
    if (each != name) continue;
    old = value;
    return;
  }
  environment.emplace_back(name, value);
}

Result<jobs::JobSpec> changed(jobs::JobSpec spec, const proto::UpdateJob& call) {
  if (call.command) spec.command = *call.command;
  if (call.options) spec.options = *call.options;
  if (call.workdir) spec.workdir = *call.workdir;
  if (call.after) spec.after = *call.after;
  if (call.after_success) spec.after_success = *call.after_success;
  if (call.after_end) spec.after_end = *call.after_end;
  if (call.tty) spec.tty = *call.tty;
  if (call.at_once) spec.at_once = *call.at_once;
  if (call.restart) {
    GPUROTA_ASSIGN_OR_RETURN(spec.restart, restart_of(*call.restart));
  }
  if (call.output) {
    GPUROTA_ASSIGN_OR_RETURN(spec.output, output_of(call.output));
  }
  for (const proto::Variable& each : call.environment.value_or(std::vector<proto::Variable>())) {
    set_value(spec.environment, each.name, each.value);
  }
  return spec;
}

// `known`: the existing job of this name; null: none.
Result<jobs::JobSpec> spec_of(const proto::JobDefinition& told, const JobEntry* known) {
  jobs::JobSpec spec;
  spec.name = told.name;
  spec.command = told.command;
  spec.options = told.options;
  spec.workdir = told.workdir;
  spec.after = told.after;
  spec.after_success = told.after_success.value_or(std::vector<std::string>());
  spec.after_end = told.after_end.value_or(std::vector<std::string>());
  spec.tty = told.tty.value_or(false);
  GPUROTA_ASSIGN_OR_RETURN(spec.restart, restart_of(told.restart));
  GPUROTA_ASSIGN_OR_RETURN(spec.output, output_of(told.output));
  GPUROTA_TRY(take_array(told, spec));
  for (const proto::Variable& each : told.environment) {
    set_value(spec.environment, each.name, each.value);
  }
  for (const std::string& name : told.variables) {
    const std::string* value = known ? value_of(known->spec.environment, name) : nullptr;
    if (value == nullptr) {
      return fail(Code::kInvalid,
                  fmt::format("job {}: the variable {} has no value", told.name, name));
    }
    set_value(spec.environment, name, *value);
  }
  // A different order of the variables is not a change.
  if (known &&
      std::is_permutation(spec.environment.begin(), spec.environment.end(),
                          known->spec.environment.begin(), known->spec.environment.end())) {
    spec.environment = known->spec.environment;
  }
  return spec;
}

proto::JobDefinition definition_of(const JobEntry& job, bool secrets) {
  proto::JobDefinition out;
  out.name = job.spec.name;
  out.command = job.spec.command;
  out.options = job.spec.options;
  out.workdir = job.spec.workdir;
  out.restart = jobs::to_string(job.spec.restart);
  out.after = job.spec.after;
  if (!job.spec.after_success.empty()) out.after_success = job.spec.after_success;
  if (!job.spec.after_end.empty()) out.after_end = job.spec.after_end;
  if (job.spec.tty) out.tty = true;
  if (job.spec.is_array()) out.at_once = job.spec.at_once;
  if (job.spec.is_array() && job.spec.each.empty()) out.array = to_string(job.spec.array);
  if (!job.spec.each.empty()) {
    out.each.emplace();
    for (const auto& words : job.spec.each) out.each->push_back({words});
  }
  if (job.spec.output != jobs::Output::kFile) out.output = jobs::to_string(job.spec.output);
  for (const auto& [name, value] : job.spec.environment) {
    if (secrets) {
      out.environment.push_back({name, value});
    } else {
      out.variables.push_back(name);
    }
  }
  out.start = !is_settled(job.life.state().phase);
  return out;
}

// The owner may have the secrets, and so may root, who can read them in the store anyway.
bool may_have_secrets(const Caller& caller, const JobEntry& job) {
  return caller.uid == job.uid || caller.uid == 0;
}

Error secrets_of_others() {
  return {Code::kDenied, 0,
          "only their owner and root can read the values of variables: leave out --with-secrets"};
}

// "the options and the restart policy of": what is different; empty: nothing.
std::string changes_text(const jobs::JobSpec& before, const jobs::JobSpec& now) {
  std::vector<std::string> things;
  if (before.options != now.options) things.emplace_back("the options");
  if (before.restart != now.restart) things.emplace_back("the restart policy");
  if (before.after != now.after || before.after_success != now.after_success ||
      before.after_end != now.after_end) {
    things.emplace_back("what it starts after");
  }
  if (before.at_once != now.at_once) things.emplace_back("how many items run at once");
  if (before.output != now.output || before.tty != now.tty) things.emplace_back("the output");
  std::string text;
  for (std::size_t i = 0; i < things.size(); ++i) {
    text += (i == 0 ? "changed " : i + 1 == things.size() ? " and " : ", ") + things[i];
  }
  return text.empty() ? text : text + " of";
}

const char* change_word(Jobs::Change change) {
  switch (change) {
    case Jobs::Change::kAdded:
      return "added";
    case Jobs::Change::kChanged:
      return "changed";
    case Jobs::Change::kUnchanged:
      break;
  }
  return "unchanged";
}

}  // namespace

// The limits of the job's owner apply, even if an administrator changes the job: the next start is
// the owner's.
Result<bool> JobChangeMethods::update_lease_of(const Caller& caller, const JobEntry& job,
                                               const proto::UpdateJob& call) {
  proto::Update update{{}, call.memory, call.soft_limit, call.note, call.seconds};
  update.priority = call.priority;
  update.quantum = call.quantum;
  update.warn_seconds = call.warn_seconds;
  update.warn_signal = call.warn_signal;
  update.latency = call.latency;
  update.compute_percent = call.compute_percent;
  update.compute_max_percent = call.compute_max_percent;
  const auto said = [&update] {
    return update.memory || update.soft_limit || update.note || update.seconds || update.priority ||
           update.quantum || update.warn_seconds || update.warn_signal || update.latency ||
           update.compute_percent || update.compute_max_percent;
  };
  const LeaseEntry* lease = job.lease ? parts_.tables.find(*job.lease) : nullptr;
  // A reservation does not belong to the job.
  if (!lease || lease->cause || lease->lease.kind != LeaseKind::kJob) return false;
  update.lease_id = *job.lease;
  // Whole GPUs have no limit that could be changed, only swap leases take turns, and only slices
  // can be interactive or have a share of the compute time.
  bool all = true;
  if (lease->lease.exclusive() && (update.memory || update.soft_limit)) {
    update.memory = update.soft_limit = std::nullopt;
    all = false;
  }
  if (!lease->lease.swap() && update.quantum) {
    update.quantum = std::nullopt;
    all = false;
  }
  GPUROTA_ASSIGN_OR_RETURN(auto latency, read_latency(update.latency));
  if (latency && !can_have(lease->lease, *latency)) {
    update.latency = std::nullopt;
    latency.reset();
    all = false;
  }
  Lease changed = lease->lease;
  changed.latency = latency.value_or(changed.latency);
  const ComputeShare share =
      changed_share(changed.compute(), update.compute_percent, update.compute_max_percent);
  if (share != changed.compute() && !check_compute(changed, share)) {
    update.compute_percent = update.compute_max_percent = std::nullopt;
    all = false;
  }
  if (!said()) return false;
  GPUROTA_TRY(leases_.check_update(caller, *lease, update));
  UpdateRequest request{update.memory, update.soft_limit, update.note};
  request.latency = latency;
  if (update.compute_percent || update.compute_max_percent) {
    request.compute = share;
  }
  request.by = {caller.uid, call.reason.value_or("")};
  if (update.seconds) request.lasts = std::chrono::seconds(*update.seconds);
  if (update.priority) {
    GPUROTA_ASSIGN_OR_RETURN(request.priority, read_priority(update.priority));
  }
  GPUROTA_ASSIGN_OR_RETURN(request.quantum,
                           read_quantum(update.quantum, parts_.views.is_administrator(job.uid)));
  if (update.warn_seconds || update.warn_signal) {
    GPUROTA_ASSIGN_OR_RETURN(
        request.warning,
        changed_end_warning(lease->lease.warning, update.warn_seconds, update.warn_signal));
  }
  GPUROTA_TRY(parts_.updates.update(*job.lease, request));
  return all;
}

Outcome JobChangeMethods::on(const Caller& caller, const proto::UpdateJob& call) {
  const auto job = jobs_.own_job(caller, call.name, call.user);
  if (!job) return refused(job.error());
  constexpr std::int64_t kMostSeconds = std::int64_t{100000} * 3600;
  if (call.seconds && (*call.seconds < 1 || *call.seconds > kMostSeconds)) {
    return refused({Code::kInvalid, 0, "a time is from 1 s to 100000 h"});
  }
  // Nobody else may choose what runs as the owner.
  if ((*job)->uid != caller.uid && (call.command || call.environment || call.workdir)) {
    return refused({Code::kDenied, 0,
                    "only its owner can change what a job executes; administrators can change its "
                    "limits and its restart"});
  }
  const auto spec = changed((*job)->spec, call);
  if (!spec) return refused(spec.error());
  if (const auto may = jobs::check_spec(*spec); !may) return refused(may.error());
  const std::string changes = changes_text((*job)->spec, *spec);
  const ProgramDeed deed(parts_, caller.uid, "job", **job, call.reason);
  const auto live = update_lease_of(caller, **job, call);
  if (!live) return refused(live.error());
  if (const auto done = parts_.jobs.change((*job)->id, *spec); !done) return refused(done.error());
  if (!changes.empty()) deed.tell(changes, NoticeKind::kChanged);
  return replied<proto::UpdateJob>({jobs_.describe_job(**job), *live});
}

Outcome JobChangeMethods::on(const Caller& caller, const proto::ExportJobs& call) {
  const bool secrets = call.secrets.value_or(false);
  proto::ExportJobs::Reply reply;
  if (call.name) {
    const auto job = jobs_.own_job(caller, *call.name, call.user);
    if (!job) return refused(job.error());
    if (secrets && !may_have_secrets(caller, **job)) return refused(secrets_of_others());
    reply.jobs.push_back(definition_of(**job, secrets));
    return replied<proto::ExportJobs>(reply);
  }
  const bool administrator = parts_.views.is_administrator(caller.uid);
  for (const auto& [id, job] : parts_.jobs.entries()) {
    const bool meant = call.user ? is_user(job.user, job.uid, *call.user) : job.uid == caller.uid;
    if (!meant || job.is_removed() || (job.uid != caller.uid && !administrator)) continue;
    if (secrets && !may_have_secrets(caller, job)) return refused(secrets_of_others());
    reply.jobs.push_back(definition_of(job, secrets));
  }
  const auto may = check_meant(meant_by(parts_, caller, "job", {}, call.user), !reply.jobs.empty());
  if (!may) return refused(may.error());
  return replied<proto::ExportJobs>(reply);
}

Outcome JobChangeMethods::on(const Caller& caller, const proto::ApplyJobs& call) {
  std::vector<WantedJob> wanted;
  for (const proto::JobDefinition& each : call.jobs) {
    auto spec = spec_of(each, find_job(parts_.jobs.entries(), caller.uid, each.name));
    if (!spec) return refused(spec.error());
    wanted.push_back({std::move(*spec), each.start});
  }
  const auto changes = parts_.jobs.apply(caller.uid, std::move(wanted));
  if (!changes) return refused(changes.error());
  proto::ApplyJobs::Reply reply;
  for (std::size_t i = 0; i < changes->size(); ++i) {
    reply.changes.push_back({call.jobs[i].name, change_word((*changes)[i])});
  }
  return replied<proto::ApplyJobs>(reply);
}

}  // namespace gpurota::daemon
