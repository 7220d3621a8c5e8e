#include "daemon/control/queue_methods.h"

#include "daemon/control/calls.h"
#include "daemon/control/wire_reason.h"
#include "daemon/leases/lease_environment.h"
#include "daemon/leases/own_shell.h"
#include "daemon/notices/notice_text.h"
#include "daemon/supervised/jobs.h"
#include "lease/gpu_selector.h"
#include "lease/reason.h"
#include "proto/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

std::string refusal_json(const lease::Refusal& refusal) {
  const Error& error = refusal.error;
  return proto::error_json(error.code == Code::kNoGpu ? no_gpu_error(error.message, refusal.free,
                                                                     refusal.total, refusal.reason)
                                                      : proto::wire_error(error));
}

Error no_such_request(RequestId id) {
  return {
      Code::kNotFound, 0,
      fmt::format("there is no request {}: it may have been served or cancelled", to_string(id))};
}

// The given options of `gpurota run` that ask for something other than the lease of the shell:
// "--gpus and --memory".
std::string placement_options(const proto::LeaseRequest& wanted) {
  std::vector<std::string> options;
  const auto add = [&](bool given, const char* name) {
    if (given) options.emplace_back(name);
  };
  add(wanted.gpus.has_value(), "--gpus");
  add(wanted.gpu_ids.has_value(), "--gpu-ids");
  add(wanted.memory.has_value(), "--memory");
  add(wanted.swap.value_or(false), "--swap");
  add(wanted.compute_percent.has_value(), "--compute");
  add(wanted.compute_max_percent.has_value(), "--compute-max");
  add(wanted.gpu_type.has_value(), "--gpu-type");
  add(wanted.gpu_class.has_value(), "--gpu-class");
  add(wanted.min_memory_bytes.has_value(), "--min-memory");
  add(wanted.min_cc.has_value(), "--min-cc");
  add(wanted.near.has_value(), "--near");
  add(wanted.kind == "filler", "--filler");
  return fmt::format("{}", fmt::join(options, " and "));
}

}  // namespace

std::string QueueMethods::granted(const Caller& caller, const LeaseEntry& lease) const {
  proto::Enqueue::Reply reply;
  reply.lease = parts_.views.lease(lease, caller.uid);
  // The web page must not get the token of a lease.
  if (caller.uid == lease.lease.uid && !caller.session) {
    reply.environment = lease_environment(lease, parts_.gpus, parts_.tenant_socket, false);
  }
  if (!lease.lease.exclusive()) reply.preload = parts_.preload;
  return proto::reply_json<proto::Enqueue>(reply);
}

std::string QueueMethods::waits(const Caller& caller, const QueueEntry& entry) const {
  proto::Enqueue::Reply reply;
  reply.request = parts_.views.request(entry, caller.uid);
  return proto::reply_json<proto::Enqueue>(reply, true);
}

Outcome QueueMethods::on(const Caller& caller, const proto::Acquire& call) {
  if (caller.session && call.request.kind != "reservation") {
    return refused({Code::kDenied, 0, "the web page can make reservations only"});
  }
  // Unique, also among the tickets of earlier daemons.
  std::string ticket = fmt::format("acquire-{}-{}-{}", caller.process.pid,
                                   parts_.wall_clock().time_since_epoch().count(), ++last_acquire_);
  return ask(caller, call.request, std::move(ticket), Waiting::kForFillersOnly);
}

Outcome QueueMethods::on(const Caller& caller, const proto::Enqueue& call) {
  return ask(caller, call.request, call.ticket, Waiting::kInTheQueue);
}

Outcome QueueMethods::ask(const Caller& caller, const proto::LeaseRequest& wanted,
                          std::string ticket, Waiting waiting) {
  auto request = leases_.request_of(caller, wanted);
  if (!request) return leases_.refused_to(caller, refused(request.error()), request.error());
  const OwnShell::Parts parts{parts_.tables, parts_.rooms, parts_.gpus, parts_.processes};
  const auto may = check_own_shell(parts, *request, {wanted.inside, placement_options(wanted)});
  if (!may) return leases_.refused_to(caller, refused(may.error()), may.error());
  request->ticket = std::move(ticket);
  request->at_once = waiting == Waiting::kForFillersOnly;
  return this->place(caller, *request);
}

// Whether the next sample may show that a GPU is free.
bool QueueMethods::may_change(const Caller& caller, const lease::Refusal& refusal) const {
  if (!caller.may_wait_since || refusal.error.code != Code::kNoGpu) return false;
  const auto& gpus = parts_.gpus.entries();
  const bool is_old = std::any_of(gpus.begin(), gpus.end(), [&](const GpuEntry& gpu) {
    return gpu.taken < *caller.may_wait_since;
  });
  return is_old || (refusal.reason && lease::is_passing(*refusal.reason));
}

Outcome QueueMethods::place(const Caller& caller, const AcquireRequest& request) {
  if (const auto error = parts_.driver.error) {
    return leases_.refused_to(caller, refused(*error), *error);
  }
  const auto place = parts_.queue.enqueue(request);
  if (place && place->lease) {
    Outcome outcome;
    outcome.answer = granted(caller, *place->lease);
    outcome.made = place->lease->lease.id;
    if (place->lease->holder && !place->lease->main) outcome.acquired = place->lease->lease.id;
    return outcome;
  }
  // A GPU may look taken only because it was not sampled since its last program ended.
  if (place || place.error().error.code == Code::kNoGpu) {
    for (const GpuEntry& gpu : parts_.gpus.entries()) parts_.samples.sample_soon(gpu.info.uuid);
  }
  Outcome outcome;
  if (!place && may_change(caller, place.error())) {
    outcome.again_after = CallEvent::kSample;
    return outcome;
  }
  if (!place) {
    lease::Refusal refusal = place.error();
    // Options of gpurota run are of no use to a pod.
    const bool has_options = request.kind != LeaseKind::kPod;
    if (refusal.reason && has_options) {
      refusal.reason->remedy = parts_.availability.remedy(request);
    }
    outcome.answer = refusal_json(refusal);
    return leases_.refused_to(caller, std::move(outcome), refusal.error);
  }
  // A client that waits only for fillers gets its answer when the fillers have left.
  if (!request.at_once) outcome.answer = waits(caller, *place->entry);
  outcome.waits = place->entry->id;
  return outcome;
}

Outcome QueueMethods::on(const Caller& caller, const proto::CheckRequest& call) {
  const Caller owner{caller.process, call.uid.value_or(caller.uid)};
  if (owner.uid != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return refused({Code::kDenied, 0, "only administrators can query other users' limits"});
  }
  if (parts_.driver.error) return replied<proto::CheckRequest>({});
  const auto request = leases_.request_of(owner, call.request);
  if (!request) return refused(request.error());
  const auto allowed = parts_.allowances.check_ever(*request);
  if (!allowed) return refused(allowed.error());
  const auto never = lease::impossible(request->placement, parts_.rooms.list());
  return never ? refused(never->error) : replied<proto::CheckRequest>({});
}

Result<QueueMethods::Ways> QueueMethods::ways_out(const Caller& caller,
                                                  const proto::FindAlternatives& call) const {
  if (call.request_id.has_value() == call.request.has_value()) {
    return fail(Code::kInvalid, "name a request that waits, or describe one");
  }
  if (call.request) {
    GPUROTA_ASSIGN_OR_RETURN(const AcquireRequest request,
                             leases_.request_of(caller, *call.request));
    if (const auto never = lease::impossible(request.placement, parts_.rooms.list())) {
      return tl::unexpected(never->error);
    }
    return Ways{parts_.availability.ways_out(request), request.kind};
  }
  const QueueEntry* const entry = parts_.tables.find_request(*call.request_id);
  if (!entry) return tl::unexpected(no_such_request(*call.request_id));
  if (entry->asked.uid != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return fail(Code::kDenied, to_string(entry->id) + " is somebody else's request");
  }
  return Ways{parts_.availability.ways_out(*entry), entry->asked.kind};
}

proto::Alternative QueueMethods::alternative(const lease::WayOut& way, LeaseKind kind) const {
  using Kind = lease::WayOut::Kind;
  proto::Alternative shown;
  shown.remedy = lease::remedy_text({way}, kind);
  switch (way.kind) {
    case Kind::kTime:
      shown.change = proto::AlternativeChange::kSeconds;
      shown.seconds = way.lasts.count();
      break;
    case Kind::kOtherGpus:
      shown.change = proto::AlternativeChange::kAnyGpu;
      break;
    case Kind::kMemory:
      shown.change = proto::AlternativeChange::kMemory;
      shown.memory_bytes = way.memory;
      break;
    case Kind::kSwap:
      shown.change = proto::AlternativeChange::kSwap;
      break;
    case Kind::kCount:
      shown.change = proto::AlternativeChange::kGpus;
      shown.gpus = way.count;
      break;
    case Kind::kCompute:
      shown.change = proto::AlternativeChange::kCompute;
      shown.compute_percent = way.compute;
      break;
  }
  for (const GpuUuid& gpu : way.gpus) shown.labels.push_back(parts_.gpus.name_of(gpu));
  return shown;
}

Outcome QueueMethods::on(const Caller& caller, const proto::FindAlternatives& call) {
  const auto ways = ways_out(caller, call);
  if (!ways) return refused(ways.error());
  proto::FindAlternatives::Reply reply;
  for (const lease::WayOut& way : ways->found) {
    reply.alternatives.push_back(alternative(way, ways->kind));
    reply.alternatives.back().request_id = call.request_id;
  }
  return replied<proto::FindAlternatives>(reply);
}

Outcome QueueMethods::on(const Caller& caller, const proto::ListRequests&) {
  proto::ListRequests::Reply reply;
  for (const QueueEntry& entry : parts_.tables.requests) {
    reply.requests.push_back(parts_.views.request(entry, caller.uid));
  }
  return replied<proto::ListRequests>(reply);
}

Outcome QueueMethods::on(const Caller& caller, const proto::Cancel& call) {
  const QueueEntry* entry = parts_.tables.find_request(call.request_id);
  if (!entry) {
    auto booking = bookings_.cancel(caller, call);
    return booking ? std::move(*booking) : refused(no_such_request(call.request_id));
  }
  if (entry->asked.uid != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return refused({Code::kDenied, 0, to_string(call.request_id) + " is somebody else's request"});
  }
  const Author by{caller.uid, call.reason.value_or("")};
  const bool own = entry->asked.uid == caller.uid;
  const std::string why = "it was cancelled by " + parts_.views.user_name(caller.uid) +
                          (own ? "" : " (administrator)") + said_text(by.reason);
  parts_.jobs.on_cancelled(entry->holder.id, why);
  parts_.queue.leave(call.request_id, Error{Code::kGone, 0, why}, by);
  return replied<proto::Cancel>({});
}

Result<void> QueueMethods::set_draining(const Caller& caller, const std::vector<std::string>& names,
                                        bool draining, const std::string& reason) {
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<GpuUuid> gpus,
                           lease::select_gpus(names, parts_.gpus.infos()));
  for (const GpuUuid& gpu : gpus) {
    if (!draining && !parts_.states.of(gpu).draining) continue;
    GPUROTA_TRY(parts_.states.set_draining(gpu, draining, reason));
    const std::string why = parts_.states.of(gpu).drain_reason;
    Recorder::Event event;
    event.type = draining ? proto::EventType::kGpuDrained : proto::EventType::kGpuUndrained;
    event.gpu = gpu;
    event.uid = caller.uid;
    event.message =
        fmt::format("GPU {} is {}{}{}", parts_.gpus.name_of(gpu),
                    draining ? "out of service" : "in service again", why.empty() ? "" : ": ", why);
    parts_.recorder.record(std::move(event));
  }
  parts_.queue.poke();
  return {};
}

Outcome QueueMethods::on(const Caller& caller, const proto::Drain& call) {
  const auto set = set_draining(caller, call.gpu_ids, true, call.reason.value_or(""));
  return set ? replied<proto::Drain>({}) : refused(set.error());
}

Outcome QueueMethods::on(const Caller& caller, const proto::Undrain& call) {
  const auto set = set_draining(caller, call.gpu_ids, false, "");
  return set ? replied<proto::Undrain>({}) : refused(set.error());
}

}  // namespace gpurota::daemon
