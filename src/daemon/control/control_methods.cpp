#include "daemon/control/control_methods.h"

#include "abi/env.h"
#include "daemon/control/calls.h"
#include "daemon/gpus/visible_devices.h"
#include "daemon/leases/turn_wishes.h"
#include "daemon/supervised/jobs.h"
#include "lease/gpu_selector.h"
#include "proto/codec.h"
#include "proto/methods.h"
#include "proto/service.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

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
  }
  return proto::Ended::kUnknown;
}

// A reservation that nobody thinks of any more is over soon.
constexpr std::chrono::minutes kDefaultReservation{30};
// Some years: so that no sum of times overflows.
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

Outcome for_administrators(std::string_view what) {
  return refused({Code::kDenied, 0, fmt::format("only administrators may {}", what)});
}

}  // namespace

Outcome ControlMethods::call(const Caller& caller, const proto::Call& call) {
  return std::visit(
      [&]<class Method>(const Method& params) {
        const bool may =
            Method::kAdministratorsMay.empty() || parts_.views.is_administrator(caller.uid);
        Outcome outcome = may ? on(caller, params) : for_administrators(Method::kAdministratorsMay);
        std::optional<LeaseId> lease = outcome.acquired;
        if constexpr (requires { lease = params.lease_id; }) {
          if (!lease) lease = params.lease_id;
        }
        const std::string_view error = proto::error_word(outcome.answer);
        if (parts_.answers && error.empty() && !Method::kReadOnly) parts_.answers->changed();
        parts_.recorder.on_call(caller.uid, caller.process.pid, Method::kMethod, lease, error);
        return outcome;
      },
      call.params);
}

proto::Hold::Reply ControlMethods::last_word(const Caller& caller, const LeaseEntry& entry,
                                             bool gone) const {
  proto::Hold::Reply reply;
  reply.lease = parts_.views.lease(entry, caller.uid);
  if (gone && entry.cause) reply.ended = ended(*entry.cause);
  if (entry.cause) reply.reason = entry.reason;
  return reply;
}

std::string ControlMethods::describe(const Caller& caller, const LeaseEntry& entry,
                                     bool gone) const {
  return proto::reply_json<proto::Hold>(last_word(caller, entry, gone), !gone);
}

std::string ControlMethods::notice(const Caller& caller, LeaseId lease,
                                   const std::string& message) const {
  const LeaseEntry* const entry = parts_.leases.find(lease);
  if (!entry) return {};
  proto::Hold::Reply reply = last_word(caller, *entry, false);
  if (!message.empty()) reply.notice = message;
  return proto::reply_json<proto::Hold>(reply, true);
}

std::uint64_t ControlMethods::changes() const {
  return parts_.grants.changes() + parts_.turns->changes() + parts_.processes->changes();
}

void ControlMethods::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (!gone || !entry.cause) return;
  proto::Hold::Reply reply;
  reply.lease.lease_id = entry.lease.id;
  reply.lease.kind = proto::enum_of<proto::LeaseKind>(to_string(entry.lease.kind));
  reply.lease.state = proto::LeaseState::kEnding;
  reply.lease.uid = entry.lease.uid;
  reply.lease.user = parts_.views.user_name(entry.lease.uid);
  reply.lease.since = entry.lease.since;
  reply.ended = ended(*entry.cause);
  reply.reason = entry.reason;
  ended_.add(std::move(reply));
}

Result<const LeaseEntry*> ControlMethods::own_lease(const Caller& caller, LeaseId id) const {
  const LeaseEntry* entry = parts_.leases.find(id);
  if (!entry) return tl::unexpected(no_such_lease(id));
  if (entry->lease.uid != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return fail(Code::kDenied, to_string(id) + " is somebody else's lease");
  }
  return entry;
}

Outcome ControlMethods::on(const Caller&, const proto::GetInfo&) {
  proto::GetInfo::Reply reply;
  reply.version = proto::version();
  reply.pid = ::getpid();
  reply.uid = ::geteuid();
  reply.tenant_socket = parts_.tenant_socket;
  if (const auto driver = parts_.driver.info) reply.driver_version = driver->driver_version;
  reply.gpus = static_cast<int>(parts_.gpus.entries().size());
  return replied<proto::GetInfo>(reply);
}

Result<AcquireRequest> ControlMethods::request_of(const Caller& caller,
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
  if (wanted.soft_limit && parts_.config) {
    GPUROTA_TRY(check_soft_limit(parts_.config->soft_limit, swap));
  }
  if (wanted.take_over.value_or(false)) request.placement.take_over = caller.uid;
  GPUROTA_TRY(read_kind(wanted, request));
  // Whose run it is the kernel knows: nobody can say so.
  if (request.kind == LeaseKind::kRun && parts_.jobs && parts_.jobs->job_of(caller.process)) {
    request.kind = LeaseKind::kJob;
  }
  request.as_name = wanted.as_name.value_or("");
  request.note = wanted.note.value_or("");
  request.command = wanted.command.value_or(std::vector<std::string>());
  if (wanted.gpu_ids) {
    if (wanted.gpu_ids->empty()) return fail(Code::kInvalid, "no GPU is named");
    const std::vector<GpuInfo> infos = parts_.gpus.infos();
    for (const std::string& name : *wanted.gpu_ids) {
      GPUROTA_ASSIGN_OR_RETURN(GpuUuid uuid, lease::select_gpu(name, infos));
      request.placement.gpus.push_back(std::move(uuid));
    }
  }
  return request;
}

std::vector<proto::Variable> ControlMethods::environment_of(const LeaseEntry& entry) const {
  std::vector<proto::Variable> variables = {
      {"CUDA_VISIBLE_DEVICES", visible_devices(entry.lease, parts_.gpus)},
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
      {GPUROTA_ENV_LEASE, to_string(entry.lease.id)}};
  if (!entry.lease.exclusive()) {
    variables.push_back({GPUROTA_ENV_SOCKET, parts_.tenant_socket});
    variables.push_back({GPUROTA_ENV_TOKEN, entry.token});
  }
  return variables;
}

Outcome ControlMethods::refused_to(const Caller& caller, Outcome outcome, const std::string& why) {
  if (parts_.jobs) parts_.jobs->on_refused(caller.process, why);
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Start& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return refused(entry.error());
  const auto lasts = time_of(call.seconds);
  if (!lasts) return refused(lasts.error());
  const bool subreaper = call.subreaper.value_or(false);
  const auto started = (*entry)->lease.kind == LeaseKind::kReservation
                           ? parts_.leases.start_command(
                                 call.lease_id, {call.pid, caller.process, subreaper, *lasts})
                           : parts_.leases.start(call.lease_id, call.pid, subreaper);
  if (!started) return refused_to(caller, refused(started.error()), started.error().message);
  if (parts_.jobs) parts_.jobs->on_held(caller.process, call.lease_id);
  Outcome outcome = replied<proto::Start>({*started});
  outcome.started = call.lease_id;
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Hold& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (entry) return {describe(caller, **entry, false), {}, {}, call.lease_id, {}};
  const proto::Hold::Reply* const last = ended_.find(call.lease_id);
  const bool may_know =
      last && (last->lease.uid == caller.uid || parts_.views.is_administrator(caller.uid));
  return may_know ? replied<proto::Hold>(*last) : refused(entry.error());
}

Result<std::vector<LeaseId>> ControlMethods::chosen_leases(const Caller& caller,
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
  const std::vector<GpuInfo> infos = parts_.gpus.infos();
  for (const std::string& name : call.gpu_ids.value_or(std::vector<std::string>())) {
    GPUROTA_ASSIGN_OR_RETURN(GpuUuid uuid, lease::select_gpu(name, infos));
    gpus.push_back(std::move(uuid));
  }
  std::vector<LeaseId> chosen;
  for (const auto& [id, entry] : parts_.leases.entries()) {
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

Outcome ControlMethods::on(const Caller& caller, const proto::Release& call) {
  const auto chosen = chosen_leases(caller, call);
  if (!chosen) return refused(chosen.error());
  Result<void> stored;
  const std::string by = "it was released by " + parts_.views.user_name(caller.uid);
  for (const LeaseId id : *chosen) {
    // Each by its name, though the call named none.
    if (!call.lease_id) parts_.recorder.on_call(caller.uid, caller.process.pid, "Release", id, {});
    const LeaseEntry* const entry = parts_.leases.find(id);
    const bool own = entry == nullptr || entry->lease.uid == caller.uid;
    parts_.leases.end(id, EndCause::kReleased, own ? by : by + " (administrator)");
    if (stored) stored = parts_.leases.heard_of_end(id);
  }
  if (!stored) return refused(stored.error());
  return replied<proto::Release>({*chosen});
}

Result<void> ControlMethods::check_update(const Caller& caller, const LeaseEntry& entry,
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
  const QueueEntry* first = parts_.queue.first_planned_on(lease.gpus);
  if ((!longer && !larger) || !first || parts_.views.is_administrator(caller.uid)) return {};
  return fail(Code::kLimit,
              fmt::format("{} waits for a GPU of {}: it can have neither more time nor "
                          "more memory",
                          to_string(first->id), to_string(lease.id)));
}

Outcome ControlMethods::on(const Caller& caller, const proto::Update& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return refused(entry.error());
  const auto lasts = time_of(call.seconds);
  if (!lasts) return refused(lasts.error());
  if (const auto may = check_update(caller, **entry, call); !may) return refused(may.error());
  const auto quantum = read_quantum(call.quantum, parts_.views.is_administrator(caller.uid));
  if (!quantum) return refused(quantum.error());
  const auto priority = read_priority(call.priority);
  if (!priority) return refused(priority.error());
  // One's own leases are within one's limits, an administrator's too; others are given more.
  const bool given = (*entry)->lease.uid != caller.uid;
  UpdateRequest request{call.memory, call.soft_limit, call.note, *lasts, given};
  if (call.priority) request.priority = *priority;
  request.quantum = *quantum;
  const auto updated = parts_.updates.update(call.lease_id, request);
  if (!updated) return refused(updated.error());
  return replied<proto::Update>({parts_.views.lease(**entry, caller.uid)});
}

template <class Method, class View>
Outcome ControlMethods::shared(const Caller& caller, SharedAnswers::About about, const View& view) {
  if (!parts_.answers) return replied<Method>(view());
  Outcome outcome;
  outcome.shared = parts_.answers->get(about, parts_.views.like(caller.uid), changes(),
                                       [&] { return proto::reply_json<Method>(view()); });
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Status&) {
  return shared<proto::Status>(caller, SharedAnswers::About::kStatus,
                               [&] { return parts_.views.status(caller.uid); });
}

Outcome ControlMethods::on(const Caller& caller, const proto::ListProcesses& call) {
  if (call.lease_id && !parts_.leases.find(*call.lease_id)) {
    return refused(no_such_lease(*call.lease_id));
  }
  if (call.lease_id) {
    return replied<proto::ListProcesses>(parts_.views.processes(caller.uid, call.lease_id));
  }
  return shared<proto::ListProcesses>(caller, SharedAnswers::About::kProcesses, [&] {
    return parts_.views.processes(caller.uid, std::nullopt);
  });
}

Outcome ControlMethods::on(const Caller& caller, const proto::Doctor&) {
  return replied<proto::Doctor>({parts_.self.doctor(caller.uid)});
}

Outcome ControlMethods::on(const Caller&, const proto::Health&) {
  return replied<proto::Health>(parts_.self.health());
}

Outcome ControlMethods::on(const Caller&, const proto::Reload&) {
  if (const auto reloaded = parts_.reloading.reload(); !reloaded) return refused(reloaded.error());
  return replied<proto::Reload>({});
}

Outcome ControlMethods::on(const Caller&, const proto::ServiceInfo&) {
  return replied<proto::ServiceInfo>(proto::service_info());
}

Outcome ControlMethods::on(const Caller&, const proto::InterfaceDescription& call) {
  const auto described = proto::describe_interface(call.interface);
  if (!described) return {proto::error_json(described.error()), {}, {}, {}, {}};
  return replied<proto::InterfaceDescription>(*described);
}

}  // namespace gpurota::daemon
