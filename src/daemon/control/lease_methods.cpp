#include "daemon/control/lease_methods.h"

#include "core/lease_name.h"
#include "daemon/control/calls.h"
#include "daemon/control/pods.h"
#include "daemon/gpus/gpu_classes.h"
#include "daemon/leases/cdi_specs.h"
#include "daemon/leases/lease_environment.h"
#include "daemon/leases/turn_wishes.h"
#include "daemon/notices/notice_text.h"
#include "daemon/supervised/jobs.h"
#include "daemon/tenants/park_keeper.h"
#include "daemon/watch/driver_limits.h"
#include "lease/gpu_selector.h"
#include "proto/codec.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

proto::Ended ended(EndCause cause) {
  switch (cause) {
    case EndCause::kFinished:
      return proto::Ended::kFinished;
    case EndCause::kReleased:
      return proto::Ended::kReleased;
    case EndCause::kLost:
      return proto::Ended::kLost;
    case EndCause::kExpired:
      return proto::Ended::kExpired;
    case EndCause::kBooking:
      return proto::Ended::kBooking;
  }
  return proto::Ended::kUnknown;
}

// Refuses a warning that would come before the start: the program could not receive it.
Result<void> read_warning(const proto::LeaseRequest& wanted, AcquireRequest& request) {
  if (!wanted.warn_seconds && wanted.warn_signal) {
    return fail(Code::kInvalid, "say how long before the end the signal comes: --warn 10m:USR1");
  }
  GPUROTA_ASSIGN_OR_RETURN(request.warning,
                           make_end_warning(wanted.warn_seconds.value_or(0), wanted.warn_signal));
  if (!request.warning.is_set()) return {};
  if (request.kind == LeaseKind::kFiller) {
    return fail(Code::kInvalid,
                "nobody knows ahead when a filler leaves: leave out --warn, and use its grace");
  }
  if (!request.lasts || *request.lasts > request.warning.before) return {};
  return fail(
      Code::kInvalid,
      fmt::format("the warning would come before the start: the lease lasts {}, and the "
                  "warning comes {} before its end",
                  lease::duration_text(std::chrono::ceil<std::chrono::seconds>(*request.lasts)),
                  lease::duration_text(request.warning.before)));
}

// Short, so that a forgotten reservation ends soon.
constexpr std::chrono::minutes kDefaultReservation{30};
// Some years, so that no sum of times overflows.
constexpr std::int64_t kMostSeconds = std::int64_t{100000} * 3600;

Result<std::optional<std::chrono::milliseconds>> time_of(std::optional<std::int64_t> seconds) {
  using Time = std::optional<std::chrono::milliseconds>;
  if (!seconds) return Time();
  if (*seconds < 1 || *seconds > kMostSeconds) {
    return fail(Code::kInvalid, fmt::format("a time is from 1 s to {} h", kMostSeconds / 3600));
  }
  return Time(std::chrono::seconds(*seconds));
}

Result<void> read_kind(const proto::LeaseRequest& wanted, AcquireRequest& request) {
  const auto kind = parse_lease_kind(wanted.kind.value_or("run"));
  if (!kind || (*kind != LeaseKind::kRun && *kind != LeaseKind::kReservation &&
                *kind != LeaseKind::kFiller)) {
    return fail(Code::kInvalid, "the kind of a lease is run, reservation or filler");
  }
  request.kind = *kind;
  GPUROTA_ASSIGN_OR_RETURN(request.lasts, time_of(wanted.seconds));
  if (*kind == LeaseKind::kReservation && !request.lasts) request.lasts = kDefaultReservation;
  return {};
}

// After read_kind().
Result<void> take_latency(const proto::LeaseRequest& wanted, AcquireRequest& request) {
  GPUROTA_ASSIGN_OR_RETURN(const auto latency, read_latency(wanted.latency));
  request.latency = latency.value_or(LatencyClass::kNormal);
  return check_latency(request);
}

// After take_latency(), and after the GPUs are known.
Result<void> take_compute(const proto::LeaseRequest& wanted, AcquireRequest& request) {
  request.placement.compute = {wanted.compute_percent.value_or(0),
                               compute_bound(wanted.compute_max_percent.value_or(0))};
  return check_compute(request);
}

// Which kind of GPU the request wants, and near which GPUs.
Result<GpuWishes> wishes_of(const proto::LeaseRequest& wanted, const LeaseTables& tables,
                            const GpuClasses& classes, const GpuTable& gpus) {
  GpuWishes wishes;
  wishes.type = wanted.gpu_type.value_or("");
  wishes.min_memory = wanted.min_memory_bytes.value_or(Bytes());
  wishes.min_cc = wanted.min_cc.value_or(0);
  if (wishes.min_cc < 0 || wishes.min_cc > 999) {
    return fail(Code::kInvalid, "a compute capability is a number such as 8.0");
  }
  if (wanted.gpu_class) {
    wishes.gpu_class = *wanted.gpu_class;
    GPUROTA_ASSIGN_OR_RETURN(wishes.among, gpus_of_class(classes, wishes.gpu_class, gpus.infos()));
  }
  if (!wanted.near) return wishes;
  const LeaseEntry* const near = tables.find(*wanted.near);
  if (!near) return tl::unexpected(no_such_lease(*wanted.near));
  for (const LeaseGpu& gpu : near->lease.gpus) wishes.near.push_back(gpu.uuid);
  return wishes;
}

// Whether this caller may start a command in the lease, beside the command that the lease was
// acquired for. A reservation takes any command. Another lease takes commands while its first
// command runs, for example from a shell in the lease. A lease that is held by its processes or by
// a pod takes no commands.
bool takes_commands(const LeaseEntry& entry, const ports::ProcessId& caller) {
  if (entry.lease.kind == LeaseKind::kReservation) return true;
  const bool first = entry.holder && entry.holder->id == caller;
  return entry.main && !entry.automatic && !first;
}

}  // namespace

proto::Hold::Reply LeaseMethods::last_word(const Caller& caller, const LeaseEntry& entry,
                                           bool gone) const {
  proto::Hold::Reply reply;
  reply.lease = parts_.views.lease(entry, caller.uid);
  if (gone && entry.cause) reply.ended = ended(*entry.cause);
  if (entry.cause) reply.reason = entry.reason;
  if (entry.left_behind > 0) reply.left_behind = entry.left_behind;
  return reply;
}

std::string LeaseMethods::describe(const Caller& caller, const LeaseEntry& entry, bool gone) const {
  return proto::reply_json<proto::Hold>(last_word(caller, entry, gone), !gone);
}

std::string LeaseMethods::notice(const Caller& caller, LeaseId lease,
                                 const std::string& message) const {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry) return {};
  proto::Hold::Reply reply = last_word(caller, *entry, false);
  if (!message.empty()) reply.notice = message;
  return proto::reply_json<proto::Hold>(reply, true);
}

void LeaseMethods::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (!gone || !entry.cause) return;
  std::erase_if(park_calls_,
                [&](const auto& each) { return std::get<LeaseId>(each) == entry.lease.id; });
  proto::Hold::Reply reply;
  reply.lease.lease_id = entry.lease.id;
  reply.lease.kind = proto::enum_of<proto::LeaseKind>(to_string(entry.lease.kind));
  reply.lease.state = proto::LeaseState::kEnding;
  reply.lease.uid = entry.lease.uid;
  reply.lease.user = parts_.views.user_name(entry.lease.uid);
  reply.lease.since = entry.lease.since;
  reply.ended = ended(*entry.cause);
  reply.reason = entry.reason;
  if (entry.left_behind > 0) reply.left_behind = entry.left_behind;
  ended_.add(std::move(reply));
}

Result<const LeaseEntry*> LeaseMethods::own_lease(const Caller& caller, LeaseId id) const {
  const LeaseEntry* entry = parts_.tables.find(id);
  if (!entry) return tl::unexpected(no_such_lease(id));
  if (entry->lease.uid != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return fail(Code::kDenied, to_string(id) + " is somebody else's lease");
  }
  return entry;
}

Result<AcquireRequest> LeaseMethods::request_of(const Caller& caller,
                                                const proto::LeaseRequest& wanted) const {
  if (wanted.gpus && wanted.gpu_ids) {
    return fail(Code::kInvalid, "name GPUs or say how many, not both");
  }
  const bool swap = wanted.swap.value_or(false);
  if ((wanted.memory || swap) && parts_.preload.empty()) {
    return fail(Code::kUnavailable,
                "libgpurota.so is not installed, so no limit can be enforced: "
                "see gpurota doctor");
  }
  AcquireRequest request;
  request.uid = caller.uid;
  request.process = caller.process;
  request.placement.count = wanted.gpus.value_or(1);
  request.placement.memory = wanted.memory;
  request.placement.soft_limit = wanted.soft_limit;
  request.placement.threshold = wanted.unreserved_threshold;
  request.placement.swap = swap;
  request.placement.oversize = wanted.oversize.value_or(false);
  GPUROTA_ASSIGN_OR_RETURN(request.priority, read_priority(wanted.priority));
  const bool administrator = parts_.views.is_administrator(caller.uid);
  GPUROTA_ASSIGN_OR_RETURN(request.quantum, read_quantum(wanted.quantum, administrator));
  if (request.quantum && !swap) {
    return fail(Code::kInvalid, "only leases that take turns have a quantum: give --swap too");
  }
  if (wanted.soft_limit) {
    GPUROTA_TRY(check_soft_limit(parts_.config.soft_limit, swap));
  }
  const GpuClasses& classes = parts_.config.gpu_classes;
  GPUROTA_ASSIGN_OR_RETURN(request.placement.wishes,
                           wishes_of(wanted, parts_.tables, classes, parts_.gpus));
  if (wanted.take_over.value_or(false)) request.placement.take_over = caller.uid;
  GPUROTA_TRY(read_kind(wanted, request));
  GPUROTA_TRY(read_warning(wanted, request));
  GPUROTA_TRY(take_latency(wanted, request));
  // The kernel's credentials show whether the caller is a run of a job, so no caller can pretend to
  // be one.
  const JobEntry* const job =
      request.kind == LeaseKind::kRun ? parts_.jobs.job_of(caller.process) : nullptr;
  if (job) {
    request.kind = LeaseKind::kJob;
    request.waits_since = job->life.place();
  }
  request.as_name = wanted.as_name.value_or("");
  if (wanted.name) {
    GPUROTA_TRY(check_lease_name(*wanted.name));
    request.name = *wanted.name;
  }
  request.note = wanted.note.value_or("");
  request.command = wanted.command.value_or(std::vector<std::string>());
  if (wanted.gpu_ids) {
    GPUROTA_ASSIGN_OR_RETURN(request.placement.gpus,
                             lease::select_gpus(*wanted.gpu_ids, parts_.gpus.infos()));
  }
  GPUROTA_TRY(take_compute(wanted, request));
  GPUROTA_TRY(parts_.driver_limits.check_request(request));
  return request;
}

// Whether the same request may be granted later: when other leases or requests of the user have
// ended, when the disk has room, or when the driver answers.
bool LeaseMethods::may_pass(uid_t uid, const Error& error) const {
  if (error.code == Code::kIo || error.code == Code::kUnavailable) return true;
  if (error.code != Code::kLimit) return false;
  const auto of_user = [uid](const auto& entry) { return entry.asked.uid == uid; };
  const auto held_by_user = [uid](const auto& each) { return each.second.lease.uid == uid; };
  return std::any_of(parts_.tables.requests.begin(), parts_.tables.requests.end(), of_user) ||
         std::any_of(parts_.tables.leases.begin(), parts_.tables.leases.end(), held_by_user);
}

Outcome LeaseMethods::refused_to(const Caller& caller, Outcome outcome, const Error& error) {
  parts_.jobs.on_refused(caller.process, error.message, may_pass(caller.uid, error));
  return outcome;
}

Result<bool> LeaseMethods::check_driver_limit(LeaseId id) {
  const LeaseEntry* const entry = parts_.tables.find(id);
  if (!entry) return false;
  const auto waits = parts_.driver_limits.check_start(*entry);
  if (!waits) parts_.leases.end(id, EndCause::kReleased, waits.error().message);
  return waits;
}

Outcome LeaseMethods::on(const Caller& caller, const proto::Start& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return refused(entry.error());
  const auto lasts = time_of(call.seconds);
  if (!lasts) return refused(lasts.error());
  const bool subreaper = call.subreaper.value_or(false);
  const auto started = takes_commands(**entry, caller.process)
                           ? parts_.leases.start_command(
                                 call.lease_id, {call.pid, caller.process, subreaper, *lasts})
                           : parts_.leases.start(call.lease_id, call.pid, subreaper);
  if (!started) return refused_to(caller, refused(started.error()), started.error());
  Outcome outcome;
  outcome.started = call.lease_id;
  if (parts_.leases.is_moving(call.lease_id)) {
    outcome.again_after = CallEvent::kMove;
    return outcome;
  }
  const auto waits = check_driver_limit(call.lease_id);
  if (!waits) {
    return refused_to(caller, refused(waits.error()), waits.error());
  }
  if (*waits) {
    outcome.again_after = CallEvent::kLimit;
    return outcome;
  }
  parts_.jobs.on_held(caller.process, call.lease_id);
  outcome.answer = replied<proto::Start>({*started}).answer;
  return outcome;
}

Outcome LeaseMethods::on(const Caller& caller, const proto::Hold& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (entry) return {.answer = describe(caller, **entry, false), .held = call.lease_id};
  const proto::Hold::Reply* const last = ended_.find(call.lease_id);
  const bool may_know =
      last && (last->lease.uid == caller.uid || parts_.views.is_administrator(caller.uid));
  return may_know ? replied<proto::Hold>(*last) : refused(entry.error());
}

Result<std::vector<LeaseId>> LeaseMethods::chosen_leases(const Caller& caller,
                                                         const proto::Release& call) const {
  const bool all = call.all.value_or(false), reservations = call.reservations.value_or(false);
  const bool everybody = call.all_users.value_or(false);
  const int ways =
      (call.lease_id ? 1 : 0) + (call.gpu_ids ? 1 : 0) + all + reservations + everybody;
  if (ways != 1) {
    return fail(Code::kInvalid,
                "name the leases: one by its id, those on some GPUs, all, or your reservations");
  }
  if (everybody && !parts_.views.is_administrator(caller.uid)) {
    return fail(Code::kDenied, "only administrators can end everybody's leases");
  }
  if (call.lease_id) {
    GPUROTA_TRY(own_lease(caller, *call.lease_id));
    return std::vector<LeaseId>{*call.lease_id};
  }
  std::vector<GpuUuid> gpus;
  if (call.gpu_ids) {
    GPUROTA_ASSIGN_OR_RETURN(gpus, lease::select_gpus(*call.gpu_ids, parts_.gpus.infos()));
  }
  std::vector<LeaseId> chosen;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const Lease& lease = entry.lease;
    if (lease.uid != caller.uid && !everybody) continue;
    const bool there = std::any_of(gpus.begin(), gpus.end(), [&lease](const GpuUuid& gpu) {
      return lease.find_gpu(gpu) != nullptr;
    });
    const bool reserved = reservations && lease.kind == LeaseKind::kReservation;
    if (there || all || everybody || reserved) chosen.push_back(id);
  }
  return chosen;
}

Outcome LeaseMethods::on(const Caller& caller, const proto::Release& call) {
  const auto chosen = chosen_leases(caller, call);
  if (!chosen) return refused(chosen.error());
  Result<void> stored;
  const Author by{caller.uid, call.reason.value_or("")};
  const std::string why = "it was released by " + parts_.views.user_name(caller.uid);
  for (const LeaseId id : *chosen) {
    // The call named no lease: record each released lease by its id.
    if (!call.lease_id)
      parts_.recorder.on_call({caller.uid, caller.process.pid, caller.session}, "Release", id, {});
    const LeaseEntry* const entry = parts_.tables.find(id);
    const bool own = entry == nullptr || entry->lease.uid == caller.uid;
    parts_.leases.end(id, EndCause::kReleased,
                      why + (own ? "" : " (administrator)") + said_text(by.reason), by);
    if (stored) stored = parts_.leases.heard_of_end(id);
  }
  if (!stored) return refused(stored.error());
  return replied<proto::Release>({*chosen});
}

Result<void> LeaseMethods::check_update(const Caller& caller, const LeaseEntry& entry,
                                        const proto::Update& call) const {
  const Lease& lease = entry.lease;
  const bool longer =
      call.seconds &&
      (!lease.ends || parts_.wall_clock() + std::chrono::seconds(*call.seconds) > *lease.ends);
  bool larger = false;
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* gpu = parts_.gpus.find(share.uuid);
    larger |= call.memory && share.limit && gpu && call.memory->of(gpu->info.memory) > *share.limit;
  }
  const QueueEntry* first = first_planned_on(parts_.tables.requests, lease.gpus);
  if ((!longer && !larger) || !first || parts_.views.is_administrator(caller.uid)) return {};
  return fail(Code::kLimit,
              fmt::format("{} waits for a GPU of {}: it can have neither more time nor "
                          "more memory",
                          to_string(first->id), to_string(lease.id)));
}

Result<std::string> LeaseMethods::name_for_pod(const Caller& caller, const LeaseEntry& entry,
                                               const proto::Pod& pod) const {
  if (!parts_.views.is_administrator(caller.uid)) {
    return fail(Code::kDenied, "only administrators may say which pod a lease is for");
  }
  if (entry.lease.kind != LeaseKind::kPod) {
    return fail(Code::kInvalid, to_string(entry.lease.id) + " is not the lease of a pod");
  }
  return pod_text(pod);
}

Outcome LeaseMethods::on(const Caller& caller, const proto::Update& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return refused(entry.error());
  const auto lasts = time_of(call.seconds);
  if (!lasts) return refused(lasts.error());
  if (const auto may = check_update(caller, **entry, call); !may) return refused(may.error());
  const auto quantum = read_quantum(call.quantum, parts_.views.is_administrator(caller.uid));
  if (!quantum) return refused(quantum.error());
  const auto priority = read_priority(call.priority);
  if (!priority) return refused(priority.error());
  const auto latency = read_latency(call.latency);
  if (!latency) return refused(latency.error());
  // An owner's changes are bound by the owner's limits, even if the owner is an administrator. Only
  // an administrator who changes somebody else's lease may exceed the limits.
  const bool given = (*entry)->lease.uid != caller.uid;
  UpdateRequest request{call.memory, call.soft_limit, call.note, *lasts, given};
  if (call.priority) request.priority = *priority;
  request.quantum = *quantum;
  request.latency = *latency;
  if (call.compute_percent || call.compute_max_percent) {
    request.compute =
        changed_share((*entry)->lease.compute(), call.compute_percent, call.compute_max_percent);
  }
  if (call.warn_seconds || call.warn_signal) {
    const auto warning =
        changed_end_warning((*entry)->lease.warning, call.warn_seconds, call.warn_signal);
    if (!warning) return refused(warning.error());
    request.warning = *warning;
  }
  if (call.pod) {
    const auto name = name_for_pod(caller, **entry, *call.pod);
    if (!name) return refused(name.error());
    request.as_name = *name;
  }
  request.by = {caller.uid, call.reason.value_or("")};
  const auto updated = parts_.updates.update(call.lease_id, request);
  if (!updated) return refused(updated.error());
  return replied<proto::Update>({parts_.views.lease(**entry, caller.uid)});
}

Outcome LeaseMethods::on(const Caller& caller, const proto::GetEnvironment& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return refused(entry.error());
  proto::GetEnvironment::Reply reply;
  reply.lease = parts_.views.lease(**entry, caller.uid);
  const bool container = call.container.value_or(false);
  reply.environment = lease_environment(**entry, parts_.gpus, parts_.tenant_socket, container);
  if (container || !(*entry)->lease.exclusive()) reply.preload = parts_.preload;
  if (const std::string device = parts_.cdi.device_of(call.lease_id); !device.empty()) {
    reply.cdi_device = device;
  }
  return replied<proto::GetEnvironment>(reply);
}

template <class Method>
Outcome LeaseMethods::park_or_back(const Caller& caller, LeaseId lease, bool parks) {
  const auto entry = own_lease(caller, lease);
  if (!entry) return refused(entry.error());
  const std::tuple call{lease, caller.process.pid, caller.process.start_ticks};
  const ParkState wanted = parks ? ParkState::kParked : ParkState::kNone;
  const auto trouble = parts_.parker.last_trouble(lease);
  Outcome later;
  later.again_after = CallEvent::kPark;
  if (parts_.parker.is_under_way(lease)) {
    const ParkState way = parks ? ParkState::kParking : ParkState::kUnparking;
    if (!park_calls_.contains(call) && (*entry)->lease.park != way) {
      return refused(Error{Code::kLimit, 0,
                           fmt::format("{} is {}: try again in some seconds", to_string(lease),
                                       to_string((*entry)->lease.park))});
    }
    park_calls_.insert(call);
    return later;
  }
  const bool has_ended = park_calls_.erase(call) > 0;
  if (has_ended && trouble) return refused(Error{Code::kUnavailable, 0, *trouble});
  if ((*entry)->lease.park == wanted && (parks || has_ended)) {
    return replied<Method>({parts_.views.lease(**entry, caller.uid)});
  }
  std::erase_if(park_calls_, [&](const auto& each) { return std::get<LeaseId>(each) == lease; });
  const Author by{caller.uid};
  const auto begun = parks ? parts_.parker.park(lease, by) : parts_.parker.unpark(lease, by);
  if (!begun) return refused(begun.error());
  if (!parks && (*entry)->lease.park == ParkState::kWaiting) {
    return replied<Method>({parts_.views.lease(**entry, caller.uid)});
  }
  park_calls_.insert(call);
  return parts_.parker.is_under_way(lease) ? later : park_or_back<Method>(caller, lease, parks);
}

Outcome LeaseMethods::on(const Caller& caller, const proto::Park& call) {
  return park_or_back<proto::Park>(caller, call.lease_id, true);
}

Outcome LeaseMethods::on(const Caller& caller, const proto::Unpark& call) {
  return park_or_back<proto::Unpark>(caller, call.lease_id, false);
}

}  // namespace gpurota::daemon
