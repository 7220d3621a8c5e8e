#include "daemon/history/recorder.h"

#include "base/log.h"
#include "base/text.h"
#include "daemon/history/refusal_text.h"
#include "proto/methods.h"
#include "proto/text_forms.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Usage in the store that is younger than this counts as up to date.
constexpr Duration kFresh = std::chrono::milliseconds(500);

// Events are written to the store after this delay, and then given to followers.
constexpr Duration kEventDelay = std::chrono::milliseconds(100);
constexpr Duration kFlushDelay = std::chrono::milliseconds(500);
// How often the use of leases that have not ended is written.
constexpr Duration kUsagePeriod = std::chrono::seconds(60);
constexpr auto kPrunePeriod = std::chrono::hours(1);

AuditRecord audit_of(const Lease& lease, std::string_view operation) {
  AuditRecord record;
  record.uid = lease.uid;
  record.lease = lease.id;
  record.operation = operation;
  if (!lease.gpus.empty()) record.bytes = lease.gpus.front().limit;
  return record;
}

// Describes changes of a lease's turns, compute time and latency; empty: there are none.
std::string turns_text(const Lease& lease, const Lease& before) {
  std::string text;
  if (lease.priority != before.priority) text += fmt::format(", priority {}", lease.priority);
  if (lease.quantum != before.quantum && lease.quantum) {
    text += lease.quantum->count() > 0 ? fmt::format(", quantum {} ms", lease.quantum->count())
                                       : ", quantum auto";
  }
  const ComputeShare now = lease.compute();
  if (now.least != before.compute().least) {
    text += fmt::format(", {} % of the compute time", now.least);
  }
  if (now.most != before.compute().most) {
    text += now.most != 0 ? fmt::format(", at most {} % of the compute time", now.most)
                          : ", no upper bound of the compute time";
  }
  if (lease.latency != before.latency) text += fmt::format(", {}", to_string(lease.latency));
  return text;
}

std::string primary_group(UserGroups* groups, uid_t uid) {
  const auto names = groups ? groups->group_names(uid) : std::nullopt;
  return names && !names->empty() ? names->front() : "";
}

}  // namespace

std::string describe_share(const Lease& lease, const GpuTable& gpus) {
  std::string text;
  for (const LeaseGpu& share : lease.gpus) {
    text +=
        fmt::format("{}{}GPU {}", text.empty() ? "" : ", ",
                    share.limit ? to_string(*share.limit) + " of " : "", gpus.name_of(share.uuid));
  }
  if (lease.swap()) text += " in turns";
  if (const Bytes hosted = lease.oversize(); !hosted.is_zero()) {
    text += fmt::format(", oversize: {} in host memory", to_string(hosted));
  }
  return text;
}

Recorder::Recorder(Parts parts) : parts_(std::move(parts)), events_(kMostEvents) {
  if (!parts_.history) return;
  tidier_.emplace(UsageTidier::Parts{parts_.loop, *parts_.history, parts_.config,
                                     [this] { return readers_.upto(); }});
}

Recorder::~Recorder() {
  closing_ = true;
  if (started_) write(true);
}

Result<void> Recorder::start(const std::map<LeaseId, LeaseEntry>& leases) {
  if (!parts_.audit_directory.empty() && !parts_.config.audit_size_per_user.is_zero()) {
    GPUROTA_ASSIGN_OR_RETURN(
        audit_, AuditLog::open(parts_.audit_directory, parts_.config.audit_size_per_user));
  }
  usage_written_ = parts_.loop.now();
  if (parts_.history) {
    GPUROTA_ASSIGN_OR_RETURN(auto events, parts_.history->load_events());
    events_.load(std::move(events));
    take_up_spill();
    GPUROTA_TRY(resume_usage(leases));
    schedule(kFlushDelay);
  }
  started_ = true;
  for (const auto& [id, entry] : leases) {
    told_[id] = {entry.main.has_value(), false, entry.lease};
    // The lease ended while there was no daemon.
    if (entry.cause) on_lease_change(entry, false);
  }
  return {};
}

Result<void> Recorder::resume_usage(const std::map<LeaseId, LeaseEntry>& leases) {
  GPUROTA_ASSIGN_OR_RETURN(auto usage, parts_.history->load_open_usage());
  for (ports::StoredUsage& each : usage) {
    const auto lease = leases.find(each.lease);
    if (lease != leases.end()) {
      usage_.resume(each, lease->second.lease, parts_.gpus.infos(),
                    Now{parts_.loop.now(), parts_.wall_clock()});
    } else {
      // The lease has ended since: its usage is counted as far as it is known.
      each.open = false;
      batch_.usage.push_back(std::move(each));
    }
  }
  // A lease that was made just before the last daemon was killed is counted from its beginning.
  for (const auto& [id, entry] : leases) {
    usage_.update(entry.lease, primary_group(parts_.groups, entry.lease.uid), parts_.gpus.infos(),
                  Now{parts_.loop.now(), parts_.wall_clock()});
  }
  return {};
}

void Recorder::record(Event event) {
  ports::StoredEvent stored;
  counts_[event.type] += event.count;
  stored.time = parts_.wall_clock();
  stored.type = proto::to_string(event.type);
  stored.lease = event.lease;
  stored.gpu = event.gpu;
  if (const GpuEntry* gpu = parts_.gpus.find(event.gpu)) stored.gpu_index = gpu->info.index;
  stored.uid = event.uid;
  stored.finding = std::move(event.finding);
  stored.bytes = event.bytes;
  stored.count = event.count;
  stored.message = display_text(event.message, 400);
  stored.pids = std::move(event.pids);
  stored.detail = std::move(event.detail);
  keep(std::move(stored));
  if (parts_.history) {
    if (spill_) spill_->add(events_.events().at(events_.last_id()));
    return schedule(kEventDelay);
  }
  events_.set_stored(events_.last_id());
  if (parts_.on_event) parts_.on_event();
}

void Recorder::keep(ports::StoredEvent event) {
  const std::vector<std::uint64_t> forgotten = events_.add(std::move(event));
  if (!parts_.history) return;
  batch_.events.push_back(events_.events().at(events_.last_id()));
  batch_.forgotten.insert(batch_.forgotten.end(), forgotten.begin(), forgotten.end());
}

void Recorder::take_up_spill() {
  if (parts_.spill.empty()) return;
  auto spill = EventSpill::open(parts_.spill);
  auto left = spill ? spill->read() : Result<std::vector<ports::StoredEvent>>();
  if (!spill || !left) {
    const Error& error = spill ? left.error() : spill.error();
    log::warn("events will be lost if gpurotad is killed, continuing", {{"error", error.message}});
    return;
  }
  spill_.emplace(std::move(*spill));
  const std::uint64_t stored = events_.last_id();
  for (ports::StoredEvent& event : *left) {
    if (event.id > stored) keep(std::move(event));
  }
}

void Recorder::audit(const AuditRecord& record) {
  if (!audit_) return;
  const auto written = audit_->write(record, parts_.wall_clock());
  if (written) {
    complained_ = false;
  } else if (!complained_) {
    complained_ = true;
    log::error("the audit log cannot be written, continuing without it",
               {{"error", written.error().message}});
  }
}

void Recorder::tell(const LeaseEntry& entry, proto::EventType type, const std::string& what) {
  Event event;
  event.type = type;
  event.lease = entry.lease.id;
  if (entry.lease.gpus.size() == 1) event.gpu = entry.lease.gpus.front().uuid;
  event.uid = entry.lease.uid;
  event.message = fmt::format("{} {}", to_string(entry.lease.id), what);
  if (entry.main) event.pids.push_back(entry.main->pid());
  event.detail = display_command(entry.lease.command, 200);
  if (!entry.lease.note.empty()) {
    event.detail +=
        fmt::format("{}({})", event.detail.empty() ? "" : " ", display_text(entry.lease.note, 120));
  }
  record(std::move(event));
}

void Recorder::on_lease_change(const LeaseEntry& entry, bool gone) {
  using proto::EventType;
  if (!started_) return;
  const Lease& lease = entry.lease;
  const auto [at, made] = told_.try_emplace(lease.id);
  Told& told = at->second;
  const std::string share = describe_share(lease, parts_.gpus);
  if (made) {
    tell(entry, EventType::kLeaseMade, "made: " + share);
    // The lease gets an audit record of its own, because the record of a call is not enough: the
    // client may have had to wait for the lease, or a policy may have made it.
    AuditRecord record = audit_of(lease, "lease_made");
    if (entry.holder) record.pid = entry.holder->pid();
    audit(record);
  } else if (told.lease.gpus != lease.gpus || told.lease.note != lease.note ||
             told.lease.ends != lease.ends || told.lease.priority != lease.priority ||
             told.lease.quantum != lease.quantum || told.lease.latency != lease.latency) {
    tell(entry, EventType::kLeaseUpdated,
         "changed: " + share + turns_text(lease, told.lease) +
             (lease.ends ? ", until " + proto::format_time(*lease.ends) : ""));
  }
  if (lease.state == LeaseState::kExpired && told.lease.state != LeaseState::kExpired) {
    tell(entry, EventType::kLeaseUpdated,
         "is expired: its time is over, but its programs still hold memory");
  }
  if (entry.main && !told.started) tell(entry, EventType::kLeaseStarted, "started its command");
  if (entry.cause && !told.ending) {
    tell(entry, EventType::kLeaseEnding, "ends: " + entry.reason);
    audit(audit_of(lease, "lease_ending"));
  }
  told = {entry.main.has_value(), entry.cause.has_value(), lease};
  if (gone) {
    tell(entry, EventType::kLeaseGone, "is gone: " + share + " is free");
    told_.erase(lease.id);
    usage_.close(lease.id, Now{parts_.loop.now(), parts_.wall_clock()});
    closed_usage_ = true;
  } else {
    usage_.update(lease, primary_group(parts_.groups, lease.uid), parts_.gpus.infos(),
                  Now{parts_.loop.now(), parts_.wall_clock()});
  }
  if (parts_.history) schedule(kFlushDelay);
}

void Recorder::on_gpus_found(const std::map<LeaseId, LeaseEntry>& leases) {
  if (!started_) return;
  for (const auto& [id, entry] : leases) {
    usage_.update(entry.lease, primary_group(parts_.groups, entry.lease.uid), parts_.gpus.infos(),
                  Now{parts_.loop.now(), parts_.wall_clock()});
  }
}

void Recorder::on_request(const QueueEntry& entry) {
  if (!waiting_.insert(entry.id).second || !started_) return;
  Event event;
  event.type = proto::EventType::kRequestQueued;
  event.uid = entry.asked.uid;
  event.message = fmt::format("{} waits: {}", to_string(entry.id),
                              reason_text(entry.reason, parts_.wall_clock()));
  event.detail = display_command(entry.asked.command, 200);
  record(std::move(event));
}

void Recorder::on_request_granted(const QueueEntry& entry, const LeaseEntry& lease) {
  if (waiting_.erase(entry.id) == 0) return;
  waits_.add(parts_.wall_clock() - entry.since);
  Event event;
  event.type = proto::EventType::kRequestGranted;
  event.lease = lease.lease.id;
  event.uid = entry.asked.uid;
  event.message = fmt::format("{} has become {}", to_string(entry.id), to_string(lease.lease.id));
  record(std::move(event));
}

void Recorder::on_request_gone(const QueueEntry& entry, const Error& why) {
  waiting_.erase(entry.id);
  Event event;
  event.type = proto::EventType::kRequestCancelled;
  event.uid = entry.asked.uid;
  event.message = fmt::format("{} left the queue: {}", to_string(entry.id), why.message);
  record(std::move(event));
}

void Recorder::on_call(const Who& who, std::string_view method, std::optional<LeaseId> lease,
                       std::string_view error) {
  const bool minor = proto::is_read_only(method) && !proto::tells_secrets(method);
  if (error.empty() && minor) return;
  method.remove_prefix(method.rfind('.') + 1);
  AuditRecord record;
  record.uid = who.uid;
  record.pid = who.pid;
  record.session = who.session;
  record.lease = lease;
  record.operation = method;
  if (error.empty()) {
    if (lease) {
      const auto told = told_.find(*lease);
      if (told != told_.end() && !told->second.lease.gpus.empty()) {
        record.bytes = told->second.lease.gpus.front().limit;
      }
    }
    return audit(record);
  }
  record.error_code = error;
  if (!calls_.admit({who.uid, std::string(method), std::string(record.error_code), lease},
                    parts_.loop.now())) {
    return schedule(RateLimiter::kWindow);
  }
  audit(record);
  if (!minor) {
    Event event;
    event.type = proto::EventType::kCallDenied;
    event.lease = lease;
    event.uid = who.uid;
    event.message = refusal_text(method, record.error_code);
    event.pids = {who.pid};
    this->record(std::move(event));
  }
}

std::optional<Recorder::Event> Recorder::deny(LeaseId lease, uid_t uid, pid_t pid,
                                              const char* operation, std::optional<Bytes> asked) {
  constexpr const char* kCode = "LimitExceeded";
  if (!grants_.admit({uid, operation, kCode, lease}, parts_.loop.now())) {
    schedule(RateLimiter::kWindow);
    return std::nullopt;
  }
  AuditRecord record;
  record.uid = uid;
  record.pid = pid;
  record.lease = lease;
  record.operation = operation;
  record.bytes = asked;
  record.error_code = kCode;
  audit(record);
  Event event;
  event.type = proto::EventType::kGrantDenied;
  event.lease = lease;
  event.uid = uid;
  event.bytes = asked;
  event.pids = {pid};
  return event;
}

void Recorder::on_refusal(LeaseId lease, uid_t uid, pid_t pid, const GpuUuid& gpu, Bytes asked) {
  auto event = deny(lease, uid, pid, "grant", asked);
  if (!event) return;
  event->gpu = gpu;
  event->message =
      fmt::format("{} was refused more memory: {}", to_string(lease), to_string(asked));
  record(std::move(*event));
}

// Also logged, as the program itself can report only that it has no memory.
void Recorder::on_too_many_processes(LeaseId lease, uid_t uid, pid_t pid, const std::string& why) {
  auto event = deny(lease, uid, pid, "process", std::nullopt);
  if (!event) return;
  event->message = fmt::format("a process of {} gets no memory: {}", to_string(lease), why);
  log::warn(event->message, {{"lease", to_string(lease)}, {"uid", uid}, {"pid", pid}});
  record(std::move(*event));
}

// Records the repeated refusals that were only counted, in one record for each kind.
void Recorder::tell_denials() {
  const TimePoint time = parts_.loop.now();
  for (const bool grant : {false, true}) {
    for (const RateLimiter::Suppressed& each : (grant ? grants_ : calls_).take_counts(time)) {
      AuditRecord record;
      record.uid = each.key.uid;
      record.lease = each.key.lease;
      record.operation = each.key.operation;
      record.error_code = each.key.error_code;
      record.count = each.count;
      audit(record);
      Event event;
      event.type = grant ? proto::EventType::kGrantDenied : proto::EventType::kCallDenied;
      event.lease = each.key.lease;
      event.uid = each.key.uid;
      event.count = each.count;
      event.message = refusal_text(each.key.operation, each.key.error_code, each.count);
      this->record(std::move(event));
    }
  }
}

void Recorder::on_use(const GpuUuid& gpu, const std::map<LeaseId, Bytes>& used,
                      const std::optional<std::map<LeaseId, int>>& loads) {
  const Now time = Now{parts_.loop.now(), parts_.wall_clock()};
  usage_.on_loads(gpu, loads, time);
  std::set<LeaseId>& before = in_use_[gpu];
  if (before.empty() && used.empty()) return;
  for (const LeaseId lease : before) {
    if (!used.contains(lease)) usage_.on_use(lease, gpu, Bytes(), time);
  }
  before.clear();
  for (const auto& [lease, bytes] : used) {
    usage_.on_use(lease, gpu, bytes, time);
    before.insert(lease);
  }
}

void Recorder::schedule(Duration delay) {
  const TimePoint when = parts_.loop.now() + delay;
  if (timer_ && timer_at_ <= when) return;
  timer_ = parts_.loop.add_timer(when, ports::Urgency::kHousekeeping, [this] { on_timer(); });
  timer_at_ = when;
}

void Recorder::on_timer() {
  timer_.reset();
  tell_denials();
  write(false);
  if (calls_.next_end() || grants_.next_end()) schedule(RateLimiter::kWindow);
  if (parts_.history && !usage_.empty()) schedule(kUsagePeriod);
}

void Recorder::flush() { write(true); }

void Recorder::store_again() {
  if (unwritten_ && !batch_.empty()) write_batch();
}

void Recorder::write(bool all_usage) {
  if (!parts_.history) return;
  const Now time = Now{parts_.loop.now(), parts_.wall_clock()};
  if (all_usage || closed_usage_ || time.mono - usage_written_ >= kUsagePeriod) {
    for (ports::StoredUsage& each : usage_.take(time)) batch_.usage.push_back(std::move(each));
    closed_usage_ = false;
    usage_written_ = time.mono;
  }
  if (!batch_.empty()) write_batch();
  if (time.wall - pruned_ >= kPrunePeriod) {
    pruned_ = time.wall;
    tidier_->forget(time.wall - std::chrono::hours(24) * parts_.config.history_days);
  }
}

// Events that cannot be stored are written again with the next events, but followers get them now.
// Usage that has not ended continues to be counted, and is written with the next events.
void Recorder::write_batch() {
  // Wait until the store is open: meanwhile the events are only in the spill.
  if (!closing_ && parts_.durability && !parts_.durability->is_open()) return;
  constexpr std::size_t kMostTriedAgain = 10000;
  const bool news = !batch_.events.empty();
  if (const auto saved = parts_.history->save(batch_); !saved) {
    if (!unwritten_) {
      log::error("history cannot be written, trying again", {{"error", saved.error().message}});
    }
    unwritten_ = true;
    std::vector<ports::StoredUsage>& usage = batch_.usage;
    usage.erase(std::remove_if(usage.begin(), usage.end(), [](const auto& u) { return u.open; }),
                usage.end());
    // Drop the events that the log has discarded: the oldest, of users who have many.
    std::erase_if(batch_.events,
                  [&](const auto& event) { return !events_.events().contains(event.id); });
    if (usage.size() > kMostTriedAgain) usage.clear();
  } else {
    for (const ports::StoredUsage& each : batch_.usage) {
      if (!each.open) tidier_->on_row(each.uid);
    }
    batch_ = {};
    unwritten_ = false;
    if (spill_) spill_->clear();
  }
  if (news) {
    const bool waits = !unwritten_ && parts_.durability;
    stored_.push_back({waits ? parts_.durability->made() : 0, events_.last_id()});
    tell_stored(parts_.durability ? parts_.durability->told() : 0);
  }
}

void Recorder::tell_stored(std::uint64_t upto) {
  const std::uint64_t before = events_.stored_id();
  for (; !stored_.empty() && stored_.front().change <= upto; stored_.pop_front()) {
    events_.set_stored(stored_.front().last_event);
  }
  if (events_.stored_id() != before && !closing_ && parts_.on_event) {
    parts_.on_event();
  }
}

// A follower does not wait for a disk that fails.
void Recorder::on_durability(const ports::Durability::News& news) {
  tell_stored(news.upto);
  if (!batch_.empty()) schedule(kEventDelay);
}

// Does not store at every call, because storing is a write to the database.
void Recorder::store_usage() {
  if (parts_.loop.now() - usage_written_ >= kFresh || closed_usage_) write(true);
}

Result<std::vector<ports::UsageSum>> Recorder::usage_of(uid_t uid, WallTime since, WallTime until) {
  if (!parts_.history) return std::vector<ports::UsageSum>();
  store_usage();
  return parts_.history->sum_usage_of(uid, since, until);
}

}  // namespace gpurota::daemon
