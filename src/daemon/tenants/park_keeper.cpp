#include "daemon/tenants/park_keeper.h"

#include "base/log.h"
#include "daemon/tenants/tenant_messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

constexpr Duration kParkPause = std::chrono::milliseconds(20);
// Of leases that are brought back, only deaths of processes are looked for.
constexpr Duration kDeathPause = std::chrono::seconds(1);

const Tenant* find_tenant(const TenantTable& tenants, LeaseId lease, pid_t pid) {
  for (const auto& [id, tenant] : tenants.of_lease(lease)) {
    if (tenant->process.pid() == pid && !tenant->dead && tenant->event) return tenant;
  }
  return nullptr;
}

// Whether nothing more has to move before the memory that turns count on the lease's GPUs fits
// there.
bool has_moved_for(const Lease& lease, const sched::Turns& turns, TimePoint now) {
  if (turns.on_hold(now)) return false;
  const sched::Residency& memory = turns.residency();
  return std::all_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
    const auto slot = memory.slot_of(share.uuid);
    return !slot || memory.used(*slot) <= memory.capacity(*slot);
  });
}

constexpr const char* kRestarted = "gpurotad was restarted in the middle";

std::string obstacle_text(std::uint32_t obstacles) {
  if ((obstacles & GPUROTA_PARK_HOST_MEMORY) != 0) {
    return "has had memory of cuMemCreate on the host, with which the driver hangs";
  }
  return "has had memory of another process (IPC, imported memory), which cannot be parked so far";
}

}  // namespace

std::optional<std::string> ParkKeeper::last_trouble(LeaseId lease) const {
  const auto at = troubles_.find(lease);
  return at == troubles_.end() ? std::nullopt : std::optional(at->second);
}

bool ParkKeeper::keeps_aside(LeaseId lease) const {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  return entry && entry->lease.park != ParkState::kNone;
}

std::vector<ports::ProcessId> ParkKeeper::living(const LeaseEntry& entry) const {
  std::vector<ports::ProcessId> processes;
  for (const ports::ProcessId& process : entry.parked) {
    const auto info = parts_.processes.read_info(process.pid);
    // A process that cannot be read now may live.
    const bool lives = info ? info->id() == process && !info->zombie : !is_gone(info.error());
    if (lives) processes.push_back(process);
  }
  return processes;
}

// A tenant whose socket is full gets the order on its next connection.
void ParkKeeper::order(LeaseId lease, pid_t pid, std::uint32_t order, std::uint32_t seq) {
  const Tenant* const tenant = find_tenant(parts_.tenants, lease, pid);
  if (!tenant || !tenant->has_parking) return;
  auto message = make_message<gpurota_msg_park>(GPUROTA_MSG_PARK, seq);
  message.order = order;
  if (!send_message(tenant->event.get(), message)) parts_.hang_up(tenant->id);
}

ParkKeeper::Work& ParkKeeper::begin(LeaseId lease, bool parks, const Author& by) {
  Work& work = works_[lease];
  work = Work{};
  work.number = ++last_number_;
  work.parks = parks;
  work.by = by;
  work.begun = parts_.loop.now();
  return work;
}

// A lease that waits for a process that does not read does not count for others than its user.
Result<void> ParkKeeper::check_rate(const LeaseEntry& entry, bool parks) const {
  std::size_t of_user = 0, of_all = 0;
  for (const auto& [id, work] : works_) {
    const LeaseEntry* const other = parts_.tables.find(id);
    if (other && other->lease.uid == entry.lease.uid) ++of_user;
    if (work.parks || work.step == Work::Step::kRun) ++of_all;
  }
  if (of_user >= kMostOfUser) {
    return fail(Code::kLimit,
                fmt::format("{} leases of the user are being parked, or brought back: try again "
                            "in some seconds",
                            of_user));
  }
  if (!parks || of_all < kMostAtOnce) return {};
  return fail(Code::kLimit, fmt::format("{} leases are being parked, or brought back: try again "
                                        "in some seconds",
                                        of_all));
}

Bytes ParkKeeper::in_motion() const {
  Bytes sum;
  for (const auto& [id, work] : works_) {
    const LeaseEntry* const entry = parts_.tables.find(id);
    if (!work.parks || !entry) continue;
    for (const auto& process : entry->parked) sum += parts_.checks.used_by(process);
  }
  return sum;
}

Result<void> ParkKeeper::park(LeaseId lease, const Author& by) {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry || entry->cause) return fail(Code::kGone, to_string(lease) + " has ended");
  const ParkState state = entry->lease.park;
  if (state == ParkState::kWaiting) return stay_parked(*entry, by);
  if (state != ParkState::kNone) {
    return fail(Code::kLimit, fmt::format("{} is {} already", to_string(lease), to_string(state)));
  }
  if (!parts_.runner || parts_.program.file.empty()) {
    return fail(Code::kUnavailable, "gpurota-park is not installed beside gpurotad");
  }
  GPUROTA_TRY(check_rate(*entry, true));
  GPUROTA_TRY(parts_.checks.check(*entry, in_motion()));
  if (entry->lease.swap() && !parts_.turns.stay_of(lease)) {
    return fail(Code::kLimit, "host memory has no room for the memory of " + to_string(lease) +
                                  " ([turns] host_budget)");
  }
  GPUROTA_TRY(
      parts_.leases.set_park(lease, ParkState::kParking, parts_.checks.processes_of(lease)));
  if (!parts_.tables.find(lease)) return fail(Code::kGone, to_string(lease) + " has ended");
  troubles_.erase(lease);
  Work& work = begin(lease, true, by);
  if (!entry->lease.swap()) {
    close(lease);
    return {};
  }
  work.step = Work::Step::kEvict;
  parts_.set_aside(lease, true);
  wait_for_eviction(lease);
  return {};
}

void ParkKeeper::wait_for_eviction(LeaseId lease) {
  const auto at = works_.find(lease);
  if (at == works_.end()) return;
  const auto stay = parts_.turns.stay_of(lease);
  if (stay && stay->moved_out) return close(lease);
  if (parts_.loop.now() >= at->second.begun + kEvictPatience) {
    return release(lease,
                   fmt::format("its memory did not move to host memory within {} s",
                               std::chrono::ceil<std::chrono::seconds>(kEvictPatience).count()),
                   0);
  }
  at->second.timer =
      parts_.loop.add_timer(parts_.loop.now() + kParkPause, ports::Urgency::kSchedule,
                            [this, lease] { wait_for_eviction(lease); });
}

void ParkKeeper::close(LeaseId lease) {
  const LeaseEntry& entry = parts_.tables.leases.at(lease);
  Work& work = works_.at(lease);
  work.step = Work::Step::kClose;
  work.begun = parts_.loop.now();
  work.seq = ++last_seq_;
  work.waits.clear();
  for (const ports::ProcessId& process : living(entry)) {
    work.waits.insert(process.pid);
    order(lease, process.pid, GPUROTA_PARK_CLOSE, work.seq);
  }
  wait_for_ready(lease);
}

// Processes that are brought back are waited for however long it takes: one that may be locked
// cannot be left alone.
void ParkKeeper::wait_for_ready(LeaseId lease) {
  const auto at = works_.find(lease);
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (at == works_.end() || !entry || at->second.step != Work::Step::kClose) return;
  Work& work = at->second;
  std::set<pid_t> alive;
  for (const ports::ProcessId& process : living(*entry)) alive.insert(process.pid);
  std::erase_if(work.waits, [&](pid_t pid) { return !alive.contains(pid); });
  if (work.waits.empty()) return run(lease);
  if (work.parks && parts_.loop.now() >= work.begun + kClosePatience) {
    return release(
        lease,
        fmt::format("process {} waits for its work for longer than {} s", *work.waits.begin(),
                    std::chrono::ceil<std::chrono::seconds>(kClosePatience).count()),
        0);
  }
  const Duration pause = work.parks ? kParkPause : kDeathPause;
  work.timer = parts_.loop.add_timer(parts_.loop.now() + pause, ports::Urgency::kSchedule,
                                     [this, lease] { wait_for_ready(lease); });
}

void ParkKeeper::on_ready(const Tenant& tenant, const gpurota_msg_park_ready& ready) {
  const auto at = works_.find(tenant.lease);
  if (at == works_.end() || at->second.step != Work::Step::kClose) return;
  Work& work = at->second;
  if (ready.header.seq != work.seq) return;
  const pid_t pid = tenant.process.pid();
  if (work.parks && ready.obstacles != 0) {
    return release(tenant.lease, fmt::format("process {} {}", pid, obstacle_text(ready.obstacles)),
                   0);
  }
  work.waits.erase(pid);
  if (work.waits.empty()) run(tenant.lease);
}

void ParkKeeper::run(LeaseId lease) {
  const LeaseEntry& entry = parts_.tables.leases.at(lease);
  Work& work = works_.at(lease);
  work.step = Work::Step::kRun;
  work.timer.reset();
  const std::vector<ports::ProcessId> processes = living(entry);
  if (processes.empty()) {
    return release(lease, work.parks ? "its processes have ended" : work.failed, 0);
  }
  if (work.memory.is_zero()) {
    for (const auto& process : processes) work.memory += parts_.checks.used_by(process);
  }
  const ports::Program call =
      park_call(parts_.program, work.parks ? "park" : "unpark", processes, work.memory);
  parts_.runner->run(call, [this, lease, number = work.number,
                            alive = std::weak_ptr<int>(alive_)](const ports::ProgramEnd& end) {
    if (!alive.expired()) on_end(lease, number, end);
  });
}

void ParkKeeper::on_end(LeaseId lease, std::uint64_t number, const ports::ProgramEnd& end) {
  const auto at = works_.find(lease);
  if (at == works_.end() || at->second.number != number) return;  // the lease has ended meanwhile
  for (const LeaseGpu& share : parts_.tables.leases.at(lease).lease.gpus) {
    parts_.samples.sample_soon(share.uuid);
  }
  const ParkReport report = read_park_report(end);
  if (!report.good) log::warn("gpurota-park has failed", {{"reason", report.why}});
  if (at->second.parks)
    return report.good ? on_parked(lease, report) : on_not_parked(lease, report);
  if (!report.good) return on_not_back(lease, report);
  release(lease, at->second.failed, report.seconds);
}

void ParkKeeper::on_parked(LeaseId lease, const ParkReport& report) {
  const LeaseEntry& entry = parts_.tables.leases.at(lease);
  const Work& work = works_.at(lease);
  const std::vector<ports::ProcessId> processes = living(entry);
  const Author by = work.by;
  const Bytes memory = work.memory;
  if (const auto stored = parts_.leases.set_park(lease, ParkState::kParked, entry.parked);
      !stored) {
    return on_not_parked(lease, {false, stored.error().message, {{0, "parked"}}, 0});
  }
  if (!works_.contains(lease)) return;  // the lease has ended meanwhile
  for (const auto& each : processes) order(lease, each.pid, GPUROTA_PARK_PARKED, work.seq);
  record(
      lease, proto::EventType::kLeaseParked,
      fmt::format("{} is parked: {} process{}, {} in {:.2f} s", to_string(lease), processes.size(),
                  processes.size() == 1 ? "" : "es", to_string(memory), report.seconds),
      by);
  finish(lease, {});
}

// gpurota-park has undone what it did, if it could. If it could not, the undoing is tried once
// more. A report that was cut short does not have the state of every process.
void ParkKeeper::on_not_parked(LeaseId lease, const ParkReport& report) {
  Work& work = works_.at(lease);
  const auto alive = living(parts_.tables.leases.at(lease));
  const bool all_known = std::all_of(alive.begin(), alive.end(), [&](const auto& process) {
    return report.state.contains(process.pid);
  });
  if (!report.tried || (all_known && report.all_run())) return release(lease, report.why, 0);
  work.parks = false;
  work.failed = report.why;
  run(lease);
}

// Some processes may run, and others still be parked. Questions of those that are parked are
// answered, and those of a process whose state is not known wait.
void ParkKeeper::on_not_back(LeaseId lease, const ParkReport& report) {
  const LeaseEntry& entry = parts_.tables.leases.at(lease);
  const Work& work = works_.at(lease);
  const Author by = work.by;
  for (const auto& [pid, state] : report.state) {
    if (state == "running") order(lease, pid, GPUROTA_PARK_RUN, work.seq);
    if (state == "locked" || state == "checkpointed") {
      order(lease, pid, GPUROTA_PARK_PARKED, work.seq);
    }
  }
  const std::string trouble = fmt::format(
      "{} cannot be brought back: {}; it stays parked, try "
      "'gpurota unpark {}' again",
      to_string(lease), report.why, to_string(lease));
  (void)parts_.leases.set_park(lease, ParkState::kParked, entry.parked);
  if (!works_.contains(lease)) return;  // the lease has ended meanwhile
  record(lease, proto::EventType::kParkFailed,
         to_string(lease) + " cannot be brought back and stays parked", by, report.why);
  finish(lease, trouble);
}

Result<void> ParkKeeper::unpark(LeaseId lease, const Author& by) {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry || entry->cause) return fail(Code::kGone, to_string(lease) + " has ended");
  if (entry->lease.park == ParkState::kNone || is_under_way(lease)) {
    return fail(Code::kLimit, to_string(lease) + " is not parked");
  }
  if (entry->lease.park == ParkState::kWaiting) return {};
  if (!parts_.runner || parts_.program.file.empty()) {
    return fail(Code::kUnavailable, "gpurota-park is not installed beside gpurotad");
  }
  for (const ports::ProcessId& process : living(*entry)) {
    if (!parts_.processes.is_stopped(process.pid)) continue;
    return fail(Code::kUnavailable,
                fmt::format("process {} is stopped or frozen: let it continue first", process.pid));
  }
  return ask_back(*entry, by);
}

Result<void> ParkKeeper::ask_back(const LeaseEntry& entry, const Author& by) {
  const LeaseId lease = entry.lease.id;
  wishes_.add(lease, by);
  if (wishes_.has_room(lease)) {
    wishes_.remove(lease);
    return bring_back(entry, by);
  }
  troubles_.erase(lease);
  if (auto stored = parts_.leases.set_park(lease, ParkState::kWaiting, entry.parked); !stored) {
    wishes_.remove(lease);
    return stored;
  }
  if (!parts_.tables.find(lease)) return fail(Code::kGone, to_string(lease) + " has ended");
  record(lease, proto::EventType::kLeaseUpdated,
         to_string(lease) + " waits for room to be brought back", by);
  return {};
}

Result<void> ParkKeeper::stay_parked(const LeaseEntry& entry, const Author& by) {
  const LeaseId lease = entry.lease.id;
  if (living(entry).empty()) {
    return fail(Code::kUnavailable,
                "the processes of " + to_string(lease) + " have ended: there is nothing to park");
  }
  GPUROTA_TRY(parts_.leases.set_park(lease, ParkState::kParked, entry.parked));
  wishes_.remove(lease);
  if (!parts_.tables.find(lease)) return fail(Code::kGone, to_string(lease) + " has ended");
  record(lease, proto::EventType::kLeaseUpdated,
         to_string(lease) + " stays parked, and waits for room no longer", by);
  return {};
}

Result<void> ParkKeeper::bring_back(const LeaseEntry& entry, const Author& by) {
  const LeaseId lease = entry.lease.id;
  if (living(entry).empty()) return end_without_processes(lease, by);
  GPUROTA_TRY(check_rate(entry, false));
  GPUROTA_TRY(parts_.leases.set_park(lease, ParkState::kUnparking, entry.parked));
  wishes_.remove(lease);
  if (!parts_.tables.find(lease)) return fail(Code::kGone, to_string(lease) + " has ended");
  troubles_.erase(lease);
  begin(lease, false, by).step = Work::Step::kRoom;
  wait_for_room(lease);
  return {};
}

Result<void> ParkKeeper::end_without_processes(LeaseId lease, const Author& by) {
  GPUROTA_TRY(parts_.leases.set_park(lease, ParkState::kNone, {}));
  wishes_.remove(lease);
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry || entry->cause) return {};
  troubles_.erase(lease);
  if (entry->lease.swap()) parts_.set_aside(lease, false);
  record(lease, proto::EventType::kLeaseUnparked,
         to_string(lease) + " is no longer parked: its processes have ended", by);
  return {};
}

// Leases that take turns have first to move the memory that this lease has room for.
void ParkKeeper::wait_for_room(LeaseId lease) {
  const auto at = works_.find(lease);
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (at == works_.end() || !entry || at->second.step != Work::Step::kRoom) return;
  if (has_moved_for(entry->lease, parts_.turns.turns(), parts_.loop.now())) return close(lease);
  if (parts_.loop.now() >= at->second.begun + kEvictPatience) {
    return on_not_back(
        lease, {false,
                fmt::format("the memory of other leases did not move to host memory within {} s",
                            std::chrono::ceil<std::chrono::seconds>(kEvictPatience).count()),
                {},
                0,
                false});
  }
  at->second.timer =
      parts_.loop.add_timer(parts_.loop.now() + kParkPause, ports::Urgency::kSchedule,
                            [this, lease] { wait_for_room(lease); });
}

void ParkKeeper::review_after(Duration wait) {
  review_timer_ = parts_.loop.add_timer(parts_.loop.now() + wait, ports::Urgency::kSchedule,
                                        [this] { review(); });
}

void ParkKeeper::review() {
  const auto this_timer = std::move(review_timer_);
  std::vector<LeaseId> parked;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.lease.park == ParkState::kParked && !entry.cause) parked.push_back(id);
  }
  for (const LeaseId id : parked) {
    const LeaseEntry* const entry = parts_.tables.find(id);
    if (!entry || entry->cause || is_under_way(id) || !living(*entry).empty()) continue;
    // If this fails, the next review tries again.
    (void)ask_back(*entry, {entry->lease.uid});
  }
  review_wishes();
  if (!review_timer_ && !(parked.empty() && wishes_.empty())) review_after(kReviewPause);
}

void ParkKeeper::review_wishes() {
  const std::uint64_t before = wishes_.changes();
  for (const LeaseId id : wishes_.leases()) {
    const LeaseEntry* const entry = parts_.tables.find(id);
    const auto by = wishes_.author(id);
    if (!by || !entry || entry->cause || !wishes_.has_room(id)) continue;
    // Too many leases may be on their way, or the store may be full: the next review tries again.
    (void)bring_back(*entry, *by);
  }
  if (wishes_.changes() != before) parts_.on_change();
}

// `trouble` is a copy, because the work that it may come from is erased.
void ParkKeeper::release(LeaseId lease, const std::string trouble, double seconds) {
  const LeaseEntry& entry = parts_.tables.leases.at(lease);
  const Work& work = works_.at(lease);
  const Author by = work.by;
  for (const auto& process : living(entry)) {
    order(lease, process.pid, GPUROTA_PARK_RUN, work.seq);
  }
  if (const auto stored = parts_.leases.set_park(lease, ParkState::kNone, {}); !stored) {
    // The next daemon finds processes that run, and stores it then.
    log::error("cannot store that a lease is not parked, continuing",
               {{"lease", to_string(lease)}, {"reason", stored.error().message}});
  }
  // A consequence of the change may have ended the lease.
  const auto after = parts_.tables.leases.find(lease);
  if (after == parts_.tables.leases.end() || !works_.contains(lease)) return;
  if (after->second.lease.swap()) parts_.set_aside(lease, false);
  if (trouble.empty()) {
    record(lease, proto::EventType::kLeaseUnparked,
           fmt::format("{} is back on its GPUs, in {:.2f} s", to_string(lease), seconds), by);
    return finish(lease, {});
  }
  record(lease, proto::EventType::kParkFailed, to_string(lease) + " is not parked", by, trouble);
  finish(lease, fmt::format("{} is not parked: {}", to_string(lease), trouble));
}

void ParkKeeper::finish(LeaseId lease, const std::string& trouble) {
  works_.erase(lease);
  if (!trouble.empty()) troubles_[lease] = trouble;
  parts_.on_change();
}

void ParkKeeper::record(LeaseId lease, proto::EventType type, const std::string& message,
                        const std::optional<Author>& by, const std::string& detail) {
  Recorder::Event event;
  event.type = type;
  event.lease = lease;
  const LeaseEntry* const entry = parts_.tables.find(lease);
  // The owner may see the detail, even if an administrator has parked the lease.
  if (entry) event.uid = entry->lease.uid;
  if (by && event.uid != by->uid) event.detail = fmt::format("by user {}", by->uid);
  if (!detail.empty()) event.detail += (event.detail.empty() ? "" : ": ") + detail;
  event.message = message;
  parts_.recorder.record(std::move(event));
}

void ParkKeeper::restore() {
  std::vector<LeaseId> unfinished;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.lease.park == ParkState::kNone || entry.cause) continue;
    if (entry.lease.swap()) parts_.set_aside(id, true);
    if (entry.lease.park == ParkState::kWaiting) wishes_.add(id, {entry.lease.uid});
    if (!is_off(entry.lease.park)) unfinished.push_back(id);
  }
  review_after(kReviewPause);
  for (const LeaseId id : unfinished) {
    const LeaseEntry* const entry = parts_.tables.find(id);
    Work& work = begin(id, false, {entry->lease.uid});
    if (entry->lease.park == ParkState::kParking) work.failed = kRestarted;
    close(id);
  }
}

void ParkKeeper::on_lease_change(const LeaseEntry& entry, bool gone) {
  // Another lease may wait for what this one gives back.
  if (!wishes_.empty() || is_off(entry.lease.park)) review_after(Duration(0));
  if (!gone && !entry.cause) return;
  troubles_.erase(entry.lease.id);
  wishes_.remove(entry.lease.id);
  if (works_.erase(entry.lease.id) > 0) parts_.on_change();
}

// A library that does not wait for an order ignores it.
void ParkKeeper::on_connected(const Tenant& tenant) {
  const LeaseEntry* const entry = parts_.tables.find(tenant.lease);
  if (!entry) return;
  const pid_t pid = tenant.process.pid();
  const auto at = works_.find(tenant.lease);
  if (at != works_.end() && at->second.waits.contains(pid)) {
    return order(tenant.lease, pid, GPUROTA_PARK_CLOSE, at->second.seq);
  }
  const bool concerned = std::find(entry->parked.begin(), entry->parked.end(), tenant.process.id) !=
                         entry->parked.end();
  if (!concerned) return order(tenant.lease, pid, GPUROTA_PARK_RUN, 0);
  if (is_off(entry->lease.park)) {
    order(tenant.lease, pid, GPUROTA_PARK_PARKED, 0);
  }
}

}  // namespace gpurota::daemon
