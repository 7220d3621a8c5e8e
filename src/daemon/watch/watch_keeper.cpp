#include "daemon/watch/watch_keeper.h"

#include "base/log.h"
#include "base/text.h"
#include "lease/allowance.h"
#include "watch/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace gpurota::daemon {
namespace {

// How long an event waits for command lines that are being read. After this time it is recorded
// without them.
constexpr Duration kCommandPatience = std::chrono::milliseconds(100);

watch::Action action_of(config::WatchAction action) {
  switch (action) {
    case config::WatchAction::kReport:
      return watch::Action::kReport;
    case config::WatchAction::kNotify:
      return watch::Action::kNotify;
    case config::WatchAction::kStop:
      return watch::Action::kStop;
  }
  return watch::Action::kReport;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the finding ends a job: a job runs unattended, so nobody would reduce its use.
bool ends_jobs(const watch::Finding& finding) {
  if (finding.kind == watch::FindingKind::kNotLimited) {
    return finding.action == watch::Action::kStop;
  }
  return finding.kind == watch::FindingKind::kOverLimit &&
         std::any_of(finding.processes.begin(), finding.processes.end(),
                     [](const watch::SeenProcess& each) { return !each.tenant; });
}

// Whether the finding is about use of a GPU that is not the user's. Other findings are about a
// lease, and concern its owner.
bool is_done_to_others(const watch::Finding& finding) {
  return finding.kind == watch::FindingKind::kForeignUse ||
         finding.kind == watch::FindingKind::kUnreservedUse;
}

// For the owner.
std::string pids_of(const watch::Finding& finding) {
  std::string text;
  for (const watch::SeenProcess& process : finding.processes) {
    if (text.size() > 100) break;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", process.pid);
  }
  return fmt::format(" (process {})", text);
}

std::string amount(std::optional<Bytes> used) {
  return used ? to_string(*used) : "an unknown amount";
}

std::string count_of(std::size_t processes) {
  return fmt::format("{} process{}", processes, processes == 1 ? "" : "es");
}

bool has_process_of(const watch::Finding& finding, LeaseId lease) {
  return std::any_of(finding.processes.begin(), finding.processes.end(),
                     [lease](const watch::SeenProcess& each) { return each.lease == lease; });
}

}  // namespace

watch::Reading WatchKeeper::reading_of(const GpuSample& sample) {
  watch::Reading reading;
  reading.gpu = sample.uuid;
  reading.used = sample.used;
  reading.lists_processes = sample.lists_processes;
  for (const GpuProcess& process : sample.processes) {
    const Attribution::Owner& owner = parts_.attribution.owner_of(process.pid);
    watch::SeenProcess seen;
    seen.pid = process.pid;
    seen.start_ticks = owner.start_ticks;
    seen.uid = owner.uid;
    seen.gone = owner.gone;
    seen.used = process.used;
    seen.graphics = process.graphics;
    seen.container = owner.container.has_value();
    // Read the name now, so that it is known when there is a finding.
    if (owner.container) (void)names_.name_of(*owner.container, process.pid);
    seen.executable = owner.executable;
    const auto tenant = parts_.tenants.lease_of(process.pid);
    seen.tenant = tenant.has_value();
    if (tenant) seen.imported = parts_.tenants.imported_by(process.pid, sample.uuid);
    if (tenant && !seen.used && !sample.used)
      seen.used = parts_.tenants.counted_in(process.pid, sample.uuid);
    seen.lease = tenant ? tenant : owner.lease;
    if (seen.lease && !parts_.tables.find(*seen.lease)) seen.lease.reset();
    reading.processes.push_back(std::move(seen));
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    const LeaseGpu* share = entry.lease.find_gpu(sample.uuid);
    if (!share) continue;
    watch::SeenLease seen;
    seen.id = id;
    seen.uid = entry.lease.uid;
    seen.limit = share->limit;
    seen.gpus = static_cast<int>(entry.lease.gpus.size());
    seen.ending = entry.cause.has_value();
    seen.takes_all_of_user = find_reservation(parts_.tables, entry.lease.uid, sample.uuid) == id;
    seen.starts_containers = watch::talks_to_container_engine(entry.lease.command);
    seen.filler = entry.lease.kind == LeaseKind::kFiller;
    seen.parked = entry.lease.park != ParkState::kNone;
    reading.leases.push_back(seen);
  }
  ask_for_libraries(reading);
  return reading;
}

void WatchKeeper::on_lease_change(const LeaseEntry& entry, bool) {
  for (const LeaseGpu& share : entry.lease.gpus) {
    const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
    if (!gpu || !gpu->sample.error.empty()) continue;
    watch::Reading reading = reading_of(gpu->sample);
    hidden_.after_change(reading, parts_.loop.now() >= settled_, parts_.loop.now());
    parts_.states.set_unreserved(share.uuid, unreserved(reading));
  }
}

watch::Library WatchKeeper::library_of(const watch::SeenProcess& process) const {
  const LeaseEntry* const entry = process.lease ? parts_.tables.find(*process.lease) : nullptr;
  return parts_.libraries->state_of(process, entry && entry->automatic);
}

void WatchKeeper::ask_for_libraries(watch::Reading& reading) {
  std::map<pid_t, watch::Library>& known = libraries_[reading.gpu];
  known.clear();
  const TimePoint now = parts_.loop.now();
  if (settled_ == TimePoint::max()) settled_ = now + parts_.config.reconnect_grace;
  if (!parts_.libraries) return;
  for (watch::SeenProcess& process : reading.processes) {
    const watch::SeenLease* const lease = watch::owning_lease(process, reading);
    const bool limited = lease && lease->limit && !process.tenant;
    if (!limited || process.gone || process.graphics || process.start_ticks == 0) continue;
    process.library = library_of(process);
    if (process.library == watch::Library::kSilent && now < settled_) {
      process.library = watch::Library::kUnknown;
    }
    known[process.pid] = process.library;
  }
}

watch::Library WatchKeeper::library_of(const GpuUuid& gpu, pid_t pid) const {
  const auto known = libraries_.find(gpu);
  if (known == libraries_.end()) return watch::Library::kNotAsked;
  const auto process = known->second.find(pid);
  return process == known->second.end() ? watch::Library::kNotAsked : process->second;
}

GpuStates::Unreserved WatchKeeper::unreserved(const watch::Reading& reading) const {
  const GpuEntry* const gpu = parts_.gpus.find(reading.gpu);
  // The driver lists the processes of MIG instances a second time at the whole GPU.
  if (gpu && gpu->info.mig_enabled) return {};
  const watch::Policy rules = policy();
  GpuStates::Unreserved sums;
  for (const watch::SeenProcess& process : reading.processes) {
    if (watch::is_ignored(process, rules) || watch::covering_lease(process, reading)) continue;
    const Bytes used = process.used.value_or(Bytes());
    sums.all += used;
    if (process.uid) sums.by_user[*process.uid] += used;
  }
  sums.hidden = reading.hidden;
  if (reading.hidden.in_use) sums.all += reading.hidden.bytes;
  return sums;
}

bool WatchKeeper::has_foreign(const watch::Reading& reading) const {
  // Where the driver does not list processes, assume that there is one.
  if (!reading.lists_processes) return true;
  const watch::Policy rules = policy();
  return std::any_of(reading.processes.begin(), reading.processes.end(), [&](const auto& process) {
    return !process.gone && !watch::is_ignored(process, rules) &&
           !watch::owning_lease(process, reading);
  });
}

watch::Action WatchKeeper::action_for(watch::FindingKind kind, std::optional<uid_t> uid) const {
  const config::Watch& site = parts_.config.watch;
  if (uid && !site.rules.empty()) {
    const std::string name = parts_.processes.user_name(*uid);
    const auto groups = parts_.groups.group_names(*uid);
    for (const config::WatchRule& rule : site.rules) {
      if (!rule.finding.empty() && rule.finding != watch::to_string(kind)) continue;
      const bool named = contains(rule.users, name) || contains(rule.users, std::to_string(*uid));
      // The rule may apply to the user, whose groups are unknown. Stop nobody before the groups are
      // known.
      if (!named && !groups) return watch::Action::kReport;
      const bool member =
          groups && std::any_of(groups->begin(), groups->end(), [&](const std::string& group) {
            return contains(rule.groups, group);
          });
      if (named || member) return action_of(rule.action);
    }
  }
  switch (kind) {
    case watch::FindingKind::kUnreservedUse:
      return action_of(site.unreserved_use);
    case watch::FindingKind::kForeignUse:
      return action_of(site.foreign_use);
    case watch::FindingKind::kOverLimit:
      return action_of(site.over_limit);
    case watch::FindingKind::kUnused:
      return action_of(site.unused);
    case watch::FindingKind::kNotLimited:
      return action_of(site.not_limited);
  }
  return watch::Action::kReport;
}

watch::Policy WatchKeeper::policy() const {
  const config::Watch& site = parts_.config.watch;
  watch::Policy policy;
  policy.threshold = parts_.config.unreserved_threshold;
  policy.unused_after = site.unused_after;
  policy.unused_grace = site.unused_grace;
  policy.stop_grace = site.stop_grace;
  policy.may_release = parts_.loop.now() >= settled_;
  for (const config::WatchIgnore& each : site.ignore) {
    policy.ignored.push_back({each.uid, each.executable});
  }
  policy.action = [this](watch::FindingKind kind, std::optional<uid_t> uid) {
    return action_for(kind, uid);
  };
  return policy;
}

void WatchKeeper::on_sample(const watch::Reading& reading) {
  tell_begun();
  for (const watch::Step& step : watcher_.decide(reading, policy(), parts_.loop.now())) {
    switch (step.what) {
      case watch::Step::What::kBegun:
        begun(step.finding);
        break;
      case watch::Step::What::kEnded:
        ended(step.finding);
        break;
      case watch::Step::What::kTerminate:
      case watch::Step::What::kKill:
        stop(step);
        break;
      case watch::Step::What::kRelease:
        parts_.enforcement.release(*step.finding.lease, "it was reserved and not used");
        break;
    }
  }
  ages_.store(watcher_, parts_.loop.now());
}

std::string WatchKeeper::user(std::optional<uid_t> uid) const {
  return uid ? display_text(parts_.processes.user_name(*uid), 32) : "an unknown user";
}

std::string WatchKeeper::describe(const watch::Finding& finding) const {
  const std::string where = "GPU " + parts_.gpus.name_of(finding.gpu);
  const std::string who =
      finding.processes.empty()
          ? "no listed process"
          : fmt::format("{} of {}", count_of(finding.processes.size()), user(finding.uid));
  std::string text;
  const LeaseEntry* lease = finding.lease ? parts_.tables.find(*finding.lease) : nullptr;
  switch (finding.kind) {
    case watch::FindingKind::kUnreservedUse:
      text = fmt::format("{} on {} in use without a lease by {}", amount(finding.used), where, who);
      break;
    case watch::FindingKind::kForeignUse:
      text = fmt::format("{} on {}, which {} of {} has exclusively, in use by {}",
                         amount(finding.used), where, to_string(*finding.lease),
                         lease ? user(lease->lease.uid) : "nobody", who);
      break;
    case watch::FindingKind::kOverLimit: {
      const LeaseGpu* share = lease ? lease->lease.find_gpu(finding.gpu) : nullptr;
      text = fmt::format("{} uses {} of {}, its limit is {}", to_string(*finding.lease),
                         amount(finding.used), where,
                         share && share->limit ? to_string(*share->limit) : "less");
      break;
    }
    case watch::FindingKind::kUnused: {
      auto idle = std::chrono::ceil<std::chrono::seconds>(parts_.loop.now() - finding.since);
      if (idle >= std::chrono::minutes(1)) idle -= idle % std::chrono::minutes(1);
      text = fmt::format("{} of {} has {} and has not used it for {}", to_string(*finding.lease),
                         user(finding.uid), where, lease::duration_text(idle));
      break;
    }
    case watch::FindingKind::kNotLimited:
      text = fmt::format(
          "{} on {} in use under {} by {} without a limit: libgpurota is loaded there but does not "
          "limit it; please report this, with what GPUROTA_DEBUG=1 prints",
          amount(finding.used), where, to_string(*finding.lease), who);
      break;
  }
  if (finding.container && !watch::is_of_its_lease(finding.kind)) {
    text +=
        "; it runs in a container: what a container engine starts is not in the lease of the "
        "command that asked for it";
    if (finding.perhaps_of) text += fmt::format(", perhaps {}", to_string(*finding.perhaps_of));
  }
  return text;
}

std::string WatchKeeper::container_of(const watch::SeenProcess& process) const {
  const auto& container = parts_.attribution.owner_of(process.pid).container;
  if (!container) return {};
  const auto called = names_.name_of(*container, process.pid);
  std::string text = " in " + container->engine;
  const std::string& name = called && !called->name.empty() ? called->name : container->id;
  if (!name.empty()) text += " " + name;
  if (called && !called->image.empty()) text += fmt::format(" ({})", called->image);
  return text;
}

std::string WatchKeeper::commands_of(const watch::Finding& finding) const {
  std::string text;
  for (const watch::SeenProcess& process : finding.processes) {
    if (text.size() > 400) break;
    const auto command = parts_.processes.command_of(process.pid);
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", process.pid, container_of(process),
                        command ? display_command(*command, 120) : "gone, hidden or not readable");
  }
  return text;
}

Recorder::Event WatchKeeper::event_of(const watch::Finding& finding, proto::EventType type,
                                      std::string message) const {
  Recorder::Event event;
  event.type = type;
  event.lease = finding.lease;
  event.gpu = finding.gpu;
  event.uid = finding.uid;
  event.finding = watch::to_string(finding.kind);
  event.bytes = finding.used;
  event.message = std::move(message);
  for (const watch::SeenProcess& process : finding.processes) {
    if (event.pids.size() < 64) event.pids.push_back(process.pid);
  }
  return event;
}

void WatchKeeper::begun(const watch::Finding& finding) {
  const std::string message = describe(finding);
  log::warn("the watch found " + std::string(watch::to_string(finding.kind)),
            {{"what", message},
             {"action", watch::to_string(finding.action)},
             {"lease", finding.lease ? to_string(*finding.lease) : "-"},
             {"uid", finding.uid ? std::to_string(*finding.uid) : "-"},
             {"gpu", finding.gpu.value}});
  unreported_.push_back({finding, event_of(finding, proto::EventType::kFindingBegun, message)});
  // A finding that ends a job must be recorded before the job's end.
  if (!telling_ && is_being_read(finding)) tell_soon();
  if (ends_jobs(finding) || !telling_) tell_begun();
  tell_those_concerned(finding, message);
  if (finding.kind == watch::FindingKind::kNotLimited) ++times_not_limited_;
  if (ends_jobs(finding)) parts_.enforcement.on_over_limit(*finding.lease, message);
}

// Whether a command line or the name of a container is still being read for a process of the
// finding. The event of the finding has both.
bool WatchKeeper::is_being_read(const watch::Finding& finding) const {
  return std::any_of(finding.processes.begin(), finding.processes.end(), [this](const auto& each) {
    const auto command = parts_.processes.command_of(each.pid);
    if (!command && command.error().code == Code::kUnavailable) return true;
    const auto& container = parts_.attribution.owner_of(each.pid).container;
    return container && !names_.name_of(*container, each.pid);
  });
}

void WatchKeeper::tell_soon() {
  telling_ = parts_.loop.add_timer(parts_.loop.now() + kCommandPatience,
                                   ports::Urgency::kHousekeeping, [this] { tell_begun(); });
}

void WatchKeeper::tell_begun() {
  telling_.reset();
  for (Unreported& each : std::exchange(unreported_, {})) {
    each.event.detail = commands_of(each.finding);
    parts_.recorder.record(std::move(each.event));
  }
}

void WatchKeeper::ended(const watch::Finding& finding) {
  parts_.recorder.record(
      event_of(finding, proto::EventType::kFindingEnded,
               fmt::format("{} of GPU {} on account of {} is over", watch::to_string(finding.kind),
                           parts_.gpus.name_of(finding.gpu), user(finding.uid))));
}

FoundUse WatchKeeper::found_use(const watch::Finding& finding) const {
  FoundUse found{.kind = finding.kind, .gpu = "GPU " + parts_.gpus.name_of(finding.gpu)};
  const LeaseEntry* const lease = finding.lease ? parts_.tables.find(*finding.lease) : nullptr;
  found.lease = finding.lease;
  if (lease) found.owner = user(lease->lease.uid);
  found.user = user(finding.uid);
  for (const watch::SeenProcess& process : finding.processes) found.pids.push_back(process.pid);
  found.processes = finding.processes.size();
  found.used = finding.used;
  return found;
}

// Notifies a user on the terminals of their leases, if the configuration says so, and by the
// channels of [notify].
void WatchKeeper::tell(const watch::Finding& finding, uid_t user, const std::string& text) {
  Notice notice{.kind = NoticeKind::kFinding, .to = user, .text = text};
  notice.gpus.push_back(parts_.gpus.name_of(finding.gpu));
  const LeaseEntry* const lease = finding.lease ? parts_.tables.find(*finding.lease) : nullptr;
  if (lease && lease->lease.uid == user) notice.lease = finding.lease;
  if (finding.uid && *finding.uid != user) notice.by = finding.uid;
  parts_.notices.on_notice(notice);
  const bool wanted = finding.action >= watch::Action::kNotify;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const bool concerned = finding.lease == id || finding.uid == user;
    if (entry.lease.uid != user || !concerned) continue;
    // If a program in a lease uses a GPU that its user has in no lease, the user is always notified
    // on that lease's terminal, whatever the configuration says.
    const bool own = is_done_to_others(finding) && has_process_of(finding, id);
    std::vector<std::string> gpus;
    for (const LeaseGpu& share : entry.lease.gpus) gpus.push_back(parts_.gpus.name_of(share.uuid));
    if (wanted || own) parts_.owners.tell_owner(id, own ? text + elsewhere_text(id, gpus) : text);
  }
}

void WatchKeeper::tell_those_concerned(const watch::Finding& finding, const std::string& message) {
  FoundUse found = found_use(finding);
  const LeaseEntry* const lease = finding.lease ? parts_.tables.find(*finding.lease) : nullptr;
  const bool stopped = finding.action == watch::Action::kStop;
  std::string text = message;
  if (is_done_to_others(finding)) {
    if (!found.pids.empty()) text = culprit_text(found);
  } else if (finding.kind == watch::FindingKind::kNotLimited) {
    text += pids_of(finding);
  }
  if (stopped) {
    text += finding.kind == watch::FindingKind::kUnused ? "; it will be released unless it is used"
                                                        : "; it is being stopped";
  }
  if (finding.uid) tell(finding, *finding.uid, text);
  if (!lease || lease->lease.uid == finding.uid) return;
  // Other users' processes are private, unless the site shows them to everybody.
  if (parts_.config.privacy != config::Privacy::kOpen) found.pids.clear();
  tell(finding, lease->lease.uid, victim_text(found) + (stopped ? "; it is being stopped" : ""));
}

bool WatchKeeper::is_still_silent(const watch::Finding& finding,
                                  const watch::SeenProcess& process) {
  if (!parts_.libraries || parts_.tenants.lease_of(process.pid)) return false;
  std::optional<LeaseId> lease = parts_.attribution.owner_of(process.pid).lease;
  if (!lease && process.uid) lease = find_reservation(parts_.tables, *process.uid, finding.gpu);
  return lease == finding.lease && library_of(process) == watch::Library::kSilent;
}

bool WatchKeeper::may_stop(const watch::Finding& finding, const watch::SeenProcess& process) {
  std::optional<LeaseId> lease = parts_.tenants.lease_of(process.pid);
  if (!lease) lease = parts_.attribution.owner_of(process.pid).lease;
  const LeaseEntry* entry = lease ? parts_.tables.find(*lease) : nullptr;
  if (finding.kind == watch::FindingKind::kOverLimit) return lease == finding.lease;
  if (finding.kind == watch::FindingKind::kNotLimited) return is_still_silent(finding, process);
  return !entry || !entry->lease.find_gpu(finding.gpu);
}

void WatchKeeper::stop(const watch::Step& step) {
  const bool kill = step.what == watch::Step::What::kKill;
  Recorder::Event event = event_of(step.finding, proto::EventType::kProcessStopped, "");
  event.pids.clear();
  for (const watch::SeenProcess& process : step.targets) {
    if (!may_stop(step.finding, process)) continue;
    const auto handle = parts_.processes.open({process.pid, process.start_ticks});
    if (!handle) continue;  // gone meanwhile
    auto sent = (*handle)->send_signal(kill ? SIGKILL : SIGTERM);
    // A stopped process would not handle SIGTERM.
    if (sent && !kill) sent = (*handle)->send_signal(SIGCONT);
    if (!sent) {
      log::error("cannot stop a process, leaving it",
                 {{"pid", process.pid}, {"error", sent.error().message}});
      continue;
    }
    event.pids.push_back(process.pid);
    AuditRecord record;
    record.uid = process.uid;
    record.pid = process.pid;
    record.lease = step.finding.lease;
    record.operation = kill ? "killed" : "terminated";
    record.bytes = process.used;
    parts_.recorder.audit(record);
  }
  if (event.pids.empty()) return;
  event.message =
      fmt::format("{} was sent to {} of {}: {}", kill ? "SIGKILL" : "SIGTERM",
                  count_of(event.pids.size()), user(step.finding.uid), describe(step.finding));
  log::warn("the watch stops processes",
            {{"what", event.message},
             {"lease", step.finding.lease ? to_string(*step.finding.lease) : "-"},
             {"uid", step.finding.uid ? std::to_string(*step.finding.uid) : "-"},
             {"gpu", step.finding.gpu.value}});
  parts_.recorder.record(std::move(event));
  parts_.samples.sample_soon(step.finding.gpu);
}

}  // namespace gpurota::daemon
