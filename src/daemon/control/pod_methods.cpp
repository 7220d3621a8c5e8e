#include "daemon/control/pod_methods.h"

#include "abi/limits.h"
#include "daemon/control/calls.h"
#include "daemon/control/pods.h"
#include "daemon/leases/lease_members.h"
#include "daemon/watch/driver_limits.h"
#include "watch/container.h"

#include <fmt/format.h>

#include <utility>

namespace gpurota::daemon {
namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  return text.size() == GPUROTA_TOKEN_CHARS &&
         text.find_first_not_of(kHex) == std::string_view::npos;
}

}  // namespace

Result<AcquireRequest> PodMethods::request_of(const Caller& caller,
                                              const proto::AcquireForPod& call) const {
  if (call.request.kind || call.request.seconds || call.request.as_name) {
    return fail(Code::kInvalid, "a pod's lease has neither a kind, nor a time, nor a person");
  }
  if (!is_token(call.token)) {
    return fail(Code::kInvalid,
                fmt::format("a token is {} hexadecimal digits", GPUROTA_TOKEN_CHARS));
  }
  GPUROTA_ASSIGN_OR_RETURN(AcquireRequest request, leases_.request_of(caller, call.request));
  request.kind = LeaseKind::kPod;
  request.lasts.reset();
  request.ticket = call.allocation;
  request.token = call.token;
  request.at_once = true;
  if (call.pod) {
    GPUROTA_ASSIGN_OR_RETURN(request.as_name, pod_text(*call.pod));
  }
  if (!call.pod_uid || call.pod_uid->empty()) return request;
  request.pod_uid = *call.pod_uid;
  if (!watch::is_pod_uid(request.pod_uid)) {
    return fail(Code::kInvalid, "the UID of a pod has only letters, digits and '-'");
  }
  request.kubelet_container =
      watch::container_of_kubelet(parts_.processes.cgroups().of(caller.process.pid));
  // The group was read by pid. The caller may have ended, and another process may have its pid.
  const auto info = parts_.processes.read_info(caller.process.pid);
  if (!info || info->id() != caller.process) request.kubelet_container.clear();
  return request;
}

Result<const LeaseEntry*> PodMethods::find_made(const Caller& caller,
                                                const AcquireRequest& request) {
  const LeaseEntry* made = nullptr;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const bool same = entry.ticket == request.ticket && entry.lease.uid == caller.uid;
    if (same && entry.lease.kind == LeaseKind::kPod) made = &entry;
  }
  if (!made) return nullptr;
  const LeaseId id = made->lease.id;
  if (made->cause) {
    return fail(Code::kUnavailable, fmt::format("{}, the lease that the container had, is ending: "
                                                "try again in a moment",
                                                to_string(id)));
  }
  if (!has_token(*made, request.token)) {
    return fail(Code::kDenied, fmt::format("{} has that allocation and another token: choose an "
                                           "allocation that nobody else has",
                                           to_string(id)));
  }
  return made;
}

Outcome PodMethods::on(const Caller& caller, const proto::AcquireForPod& call) {
  const auto request = request_of(caller, call);
  if (!request) return refused(request.error());
  const auto made = find_made(caller, *request);
  if (!made) return refused(made.error());
  if (*made) {
    return when_limited((*made)->lease.id,
                        replied<proto::AcquireForPod>({parts_.views.lease(**made, caller.uid)}));
  }
  if (find_pod_lease(parts_.tables, request->token)) {
    return refused({Code::kInvalid, 0, "another pod has that token: choose one at random"});
  }
  Outcome outcome = queue_.place(caller, *request);
  // Without a lease the call was refused, or waits for fillers.
  if (!outcome.made) return outcome;
  const LeaseId id = *outcome.made;
  return when_limited(id, std::move(outcome));
}

Outcome PodMethods::when_limited(LeaseId lease, Outcome outcome) {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry) return outcome;
  const auto waits = parts_.driver_limits.check_start(*entry);
  if (!waits) {
    // The driver may fail only for now, so a pod that runs keeps its lease.
    if (!parts_.leases.is_in_use(lease)) {
      parts_.leases.end(lease, EndCause::kReleased, waits.error().message);
    }
    return refused(waits.error());
  }
  if (!*waits) return outcome;
  Outcome later;
  later.again_after = CallEvent::kLimit;  // the same call then finds the lease
  return later;
}

}  // namespace gpurota::daemon
