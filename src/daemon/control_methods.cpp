#include "daemon/control_methods.h"

#include "abi/env.h"
#include "daemon/visible_devices.h"
#include "lease/gpu_selector.h"
#include "proto/codec.h"
#include "proto/service.h"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

Outcome failed(const Error& error) {
  return {proto::error_json(proto::wire_error(error)), {}, {}, {}};
}

template <class Method>
Outcome replied(const typename Method::Reply& reply) {
  return {proto::reply_json<Method>(reply), {}, {}, {}};
}

proto::Ended ended(EndCause cause) {
  switch (cause) {
    case EndCause::kFinished:
      return proto::Ended::kFinished;
    case EndCause::kReleased:
      return proto::Ended::kReleased;
    case EndCause::kLost:
      return proto::Ended::kLost;
  }
  return proto::Ended::kUnknown;
}

}  // namespace

Outcome ControlMethods::call(const Caller& caller, const proto::Call& call) {
  return std::visit([&](const auto& params) { return on(caller, params); }, call.params);
}

std::string ControlMethods::describe(const Caller& caller, const LeaseEntry& entry,
                                     bool gone) const {
  proto::Hold::Reply reply;
  reply.lease = parts_.views.lease(entry, caller.uid);
  if (gone && entry.cause) reply.ended = ended(*entry.cause);
  if (entry.cause) reply.reason = entry.reason;
  return proto::reply_json<proto::Hold>(reply, !gone);
}

Result<const LeaseEntry*> ControlMethods::own_lease(const Caller& caller, LeaseId id) const {
  const LeaseEntry* entry = parts_.leases.find(id);
  if (!entry) return fail(Code::kNotFound, "there is no lease " + to_string(id));
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
  if (const auto driver = parts_.driver()) reply.driver_version = driver->driver_version;
  reply.gpus = static_cast<int>(parts_.gpus.entries().size());
  return replied<proto::GetInfo>(reply);
}

Result<AcquireRequest> ControlMethods::request_of(const Caller& caller,
                                                  const proto::Acquire& call) const {
  if (call.gpus && call.gpu_ids) {
    return fail(Code::kInvalid, "name GPUs or say how many, not both");
  }
  if (call.memory && parts_.preload.empty()) {
    return fail(Code::kUnavailable,
                "libgpurota.so is not installed, so no limit could be held: "
                "see gpurota doctor");
  }
  AcquireRequest request;
  request.uid = caller.uid;
  request.pid = caller.pid;
  request.placement.count = call.gpus.value_or(1);
  request.placement.memory = call.memory;
  request.placement.soft_limit = call.soft_limit;
  request.note = call.note.value_or("");
  request.command = call.command.value_or(std::vector<std::string>());
  if (call.gpu_ids) {
    if (call.gpu_ids->empty()) return fail(Code::kInvalid, "no GPU is named");
    const std::vector<GpuInfo> infos = parts_.gpus.infos();
    for (const std::string& name : *call.gpu_ids) {
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

Outcome ControlMethods::on(const Caller& caller, const proto::Acquire& call) {
  if (const auto error = parts_.driver_error()) return failed(*error);
  const auto request = request_of(caller, call);
  if (!request) return failed(request.error());
  const auto made = parts_.leases.acquire(*request);
  if (!made) {
    const lease::Refusal& refusal = made.error();
    if (refusal.error.code != Code::kNoGpu) return failed(refusal.error);
    for (const GpuEntry& gpu : parts_.gpus.entries()) parts_.look_soon(gpu.info.uuid);
    return {
        proto::error_json(proto::no_gpu_error(refusal.error.message, refusal.free, refusal.total)),
        {},
        {},
        {}};
  }
  const LeaseEntry& entry = **made;
  proto::Acquire::Reply reply;
  reply.lease = parts_.views.lease(entry, caller.uid);
  reply.environment = environment_of(entry);
  if (!entry.lease.exclusive()) reply.preload = parts_.preload;
  Outcome outcome = replied<proto::Acquire>(reply);
  outcome.acquired = entry.lease.id;
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Start& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return failed(entry.error());
  const auto started = parts_.leases.start(call.lease_id, call.pid, call.subreaper.value_or(false));
  if (!started) return failed(started.error());
  Outcome outcome = replied<proto::Start>({*started});
  outcome.started = call.lease_id;
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Hold& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return failed(entry.error());
  return {describe(caller, **entry, false), {}, {}, call.lease_id};
}

Result<std::vector<LeaseId>> ControlMethods::chosen_leases(const Caller& caller,
                                                           const proto::Release& call) const {
  const int ways =
      (call.lease_id ? 1 : 0) + (call.gpu_ids ? 1 : 0) + (call.all.value_or(false) ? 1 : 0);
  if (ways != 1) {
    return fail(Code::kInvalid, "say which leases: one by its id, those on some GPUs, or all");
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
    if (lease.uid != caller.uid) continue;
    const bool there = std::any_of(gpus.begin(), gpus.end(), [&lease](const GpuUuid& gpu) {
      return lease.find_gpu(gpu) != nullptr;
    });
    if (there || call.all.value_or(false)) chosen.push_back(id);
  }
  return chosen;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Release& call) {
  const auto chosen = chosen_leases(caller, call);
  if (!chosen) return failed(chosen.error());
  for (const LeaseId id : *chosen) {
    parts_.leases.end(id, EndCause::kReleased,
                      fmt::format("it was released by uid {}", caller.uid));
  }
  return replied<proto::Release>({*chosen});
}

Outcome ControlMethods::on(const Caller& caller, const proto::Update& call) {
  const auto entry = own_lease(caller, call.lease_id);
  if (!entry) return failed(entry.error());
  const auto updated =
      parts_.leases.update(call.lease_id, {call.memory, call.soft_limit, call.note});
  if (!updated) return failed(updated.error());
  return replied<proto::Update>({parts_.views.lease(**entry, caller.uid)});
}

Outcome ControlMethods::on(const Caller& caller, const proto::Status&) {
  return replied<proto::Status>(parts_.views.status(caller.uid));
}

Outcome ControlMethods::on(const Caller& caller, const proto::ListProcesses& call) {
  if (call.lease_id && !parts_.leases.find(*call.lease_id)) {
    return failed(Error{Code::kNotFound, 0, "there is no lease " + to_string(*call.lease_id)});
  }
  return replied<proto::ListProcesses>(parts_.views.processes(caller.uid, call.lease_id));
}

Outcome ControlMethods::on(const Caller&, const proto::Doctor&) {
  return replied<proto::Doctor>({parts_.doctor()});
}

Outcome ControlMethods::on(const Caller& caller, const proto::Reload&) {
  if (!parts_.views.is_administrator(caller.uid)) {
    return failed(Error{Code::kDenied, 0, "only administrators may reload the configuration"});
  }
  if (const auto reloaded = parts_.reload(); !reloaded) return failed(reloaded.error());
  return replied<proto::Reload>({});
}

Outcome ControlMethods::on(const Caller&, const proto::ServiceInfo&) {
  return replied<proto::ServiceInfo>(proto::service_info());
}

Outcome ControlMethods::on(const Caller&, const proto::InterfaceDescription& call) {
  const auto described = proto::describe_interface(call.interface);
  if (!described) return {proto::error_json(described.error()), {}, {}, {}};
  return replied<proto::InterfaceDescription>(*described);
}

}  // namespace gpurota::daemon
