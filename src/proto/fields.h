// One list of the fields of every struct of the protocol, for whoever walks them: the encoder, the
// decoder and the test that compares them with dev.gpurota.varlink. Nothing else lists names.
//
// visit(v, x) calls v("name", field) for each field of x, in the order of the interface.
#pragma once

#include "proto/filler_fields.h"
#include "proto/health_fields.h"
#include "proto/history_fields.h"
#include "proto/job_fields.h"
#include "proto/like.h"
#include "proto/methods.h"
#include "proto/queue_fields.h"
#include "proto/service_fields.h"
#include "proto/turns_fields.h"

namespace gpurota::proto {

template <class V, Like<Gpu> X>
void visit(V&& v, X& x) {
  v("index", x.index);
  v("label", x.label);
  v("uuid", x.uuid);
  v("name", x.name);
  v("pci", x.pci);
  v("parent", x.parent);
  v("state", x.state);
  v("memory_bytes", x.memory_bytes);
  v("used_bytes", x.used_bytes);
  v("reserved_bytes", x.reserved_bytes);
  v("leases", x.leases);
  v("unreserved_bytes", x.unreserved_bytes);
  v("held_for", x.held_for);
  v("idle_since", x.idle_since);
  v("utilisation_percent", x.utilisation_percent);
  v("detail", x.detail);
}

template <class V, Like<LeaseGpu> X>
void visit(V&& v, X& x) {
  v("index", x.index);
  v("label", x.label);
  v("uuid", x.uuid);
  v("limit_bytes", x.limit_bytes);
  v("soft_limit_bytes", x.soft_limit_bytes);
  v("used_bytes", x.used_bytes);
  v("granted_bytes", x.granted_bytes);
  v("processes", x.processes);
  v("unused_since", x.unused_since);
  v("oversize_bytes", x.oversize_bytes);
}

template <class V, Like<Lease> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
  v("kind", x.kind);
  v("share", x.share);
  v("state", x.state);
  v("uid", x.uid);
  v("user", x.user);
  v("as_name", x.as_name);
  v("since", x.since);
  v("ends", x.ends);
  v("gpus", x.gpus);
  v("processes", x.processes);
  v("pid", x.pid);
  v("command", x.command);
  v("note", x.note);
  v("model", x.model);
  v("priority", x.priority);
  v("quantum_ms", x.quantum_ms);
}

template <class V, Like<Process> X>
void visit(V&& v, X& x) {
  v("pid", x.pid);
  v("uid", x.uid);
  v("user", x.user);
  v("gpu", x.gpu);
  v("gpu_label", x.gpu_label);
  v("gpu_uuid", x.gpu_uuid);
  v("type", x.type);
  v("used_bytes", x.used_bytes);
  v("lease_id", x.lease_id);
  v("tenant", x.tenant);
  v("command", x.command);
  v("allocations", x.allocations);
  v("refusals", x.refusals);
  v("unhooked", x.unhooked);
  v("unhooked_names", x.unhooked_names);
  v("library", x.library);
}

template <class V, Like<Variable> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("value", x.value);
}

// Methods without parameters, and their parameters.
template <class V, class X>
requires Like<X, GetInfo> || Like<X, Status> || Like<X, Doctor> || Like<X, Reload> ||
    Like<X, Reload::Reply> || Like<X, ServiceInfo>
void visit(V&&, X&) {}

template <class V, Like<GetInfo::Reply> X>
void visit(V&& v, X& x) {
  v("version", x.version);
  v("pid", x.pid);
  v("uid", x.uid);
  v("tenant_socket", x.tenant_socket);
  v("driver_version", x.driver_version);
  v("gpus", x.gpus);
}

template <class V, Like<Acquire> X>
void visit(V&& v, X& x) {
  v("gpus", x.gpus);
  v("gpu_ids", x.gpu_ids);
  v("memory", x.memory);
  v("soft_limit", x.soft_limit);
  v("note", x.note);
  v("command", x.command);
  v("kind", x.kind);
  v("seconds", x.seconds);
  v("take_over", x.take_over);
  v("as_name", x.as_name);
  v("unreserved_threshold", x.unreserved_threshold);
  v("swap", x.swap);
  v("priority", x.priority);
  v("quantum", x.quantum);
  v("oversize", x.oversize);
}

template <class V, Like<Acquire::Reply> X>
void visit(V&& v, X& x) {
  v("lease", x.lease);
  v("environment", x.environment);
  v("preload", x.preload);
}

template <class V, Like<Start> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
  v("pid", x.pid);
  v("subreaper", x.subreaper);
  v("seconds", x.seconds);
}

template <class V, Like<Start::Reply> X>
void visit(V&& v, X& x) {
  v("cgroup", x.cgroup);
}

template <class V, Like<Hold> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
}

template <class V, Like<Hold::Reply> X>
void visit(V&& v, X& x) {
  v("lease", x.lease);
  v("ended", x.ended);
  v("reason", x.reason);
  v("notice", x.notice);
}

template <class V, Like<Release> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
  v("gpu_ids", x.gpu_ids);
  v("all", x.all);
  v("reservations", x.reservations);
  v("all_users", x.all_users);
}

template <class V, Like<Release::Reply> X>
void visit(V&& v, X& x) {
  v("lease_ids", x.lease_ids);
}

template <class V, Like<Update> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
  v("memory", x.memory);
  v("soft_limit", x.soft_limit);
  v("note", x.note);
  v("seconds", x.seconds);
  v("priority", x.priority);
  v("quantum", x.quantum);
}

template <class V, Like<Update::Reply> X>
void visit(V&& v, X& x) {
  v("lease", x.lease);
}

template <class V, Like<Status::Reply> X>
void visit(V&& v, X& x) {
  v("gpus", x.gpus);
  v("leases", x.leases);
  v("findings", x.findings);
}

template <class V, Like<ListProcesses> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
}

template <class V, Like<ListProcesses::Reply> X>
void visit(V&& v, X& x) {
  v("processes", x.processes);
}

template <class V, Like<Doctor::Reply> X>
void visit(V&& v, X& x) {
  v("checks", x.checks);
}

}  // namespace gpurota::proto

// For explicit instantiation: X(Method) for each.
// clang-format off
#define GPUROTA_FOR_EACH_METHOD(X)                                                         \
  X(GetInfo) X(Acquire) X(Start) X(Hold) X(Release) X(Update) X(Status) X(ListProcesses)   \
  X(Events) X(Report) X(Doctor) X(Health) X(Reload)                                        \
  GPUROTA_FOR_EACH_QUEUE_METHOD(X) GPUROTA_FOR_EACH_FILLER_METHOD(X)                       \
  GPUROTA_FOR_EACH_JOB_METHOD(X) X(ListTurns) X(SetGpus) X(ServiceInfo)                    \
  X(InterfaceDescription)
// clang-format on
