// The fields of queue_methods.h; see fields.h.
#pragma once

#include "proto/like.h"
#include "proto/queue_methods.h"

namespace gpurota::proto {

template <class V, Like<Request> X>
void visit(V&& v, X& x) {
  v("request_id", x.request_id);
  v("position", x.position);
  v("kind", x.kind);
  v("uid", x.uid);
  v("user", x.user);
  v("as_name", x.as_name);
  v("since", x.since);
  v("gpus", x.gpus);
  v("gpu_ids", x.gpu_ids);
  v("memory", x.memory);
  v("seconds", x.seconds);
  v("free", x.free);
  v("planned", x.planned);
  v("planned_labels", x.planned_labels);
  v("expected", x.expected);
  v("reason", x.reason);
  v("next", x.next);
  v("next_at", x.next_at);
  v("pid", x.pid);
  v("command", x.command);
  v("note", x.note);
  v("swap", x.swap);
  v("oversize", x.oversize);
}

template <class V, Like<Enqueue> X>
void visit(V&& v, X& x) {
  v("ticket", x.ticket);
  v("kind", x.kind);
  v("gpus", x.gpus);
  v("gpu_ids", x.gpu_ids);
  v("memory", x.memory);
  v("soft_limit", x.soft_limit);
  v("seconds", x.seconds);
  v("take_over", x.take_over);
  v("as_name", x.as_name);
  v("note", x.note);
  v("command", x.command);
  v("unreserved_threshold", x.unreserved_threshold);
  v("swap", x.swap);
  v("priority", x.priority);
  v("quantum", x.quantum);
  v("oversize", x.oversize);
}

template <class V, Like<Enqueue::Reply> X>
void visit(V&& v, X& x) {
  v("request", x.request);
  v("lease", x.lease);
  v("environment", x.environment);
  v("preload", x.preload);
}

template <class V, Like<CheckRequest> X>
void visit(V&& v, X& x) {
  v("uid", x.uid);
  v("gpus", x.gpus);
  v("gpu_ids", x.gpu_ids);
  v("memory", x.memory);
  v("soft_limit", x.soft_limit);
  v("seconds", x.seconds);
  v("swap", x.swap);
  v("priority", x.priority);
  v("quantum", x.quantum);
  v("oversize", x.oversize);
}

template <class V, Like<GetEnvironment> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
}

template <class V, Like<GetEnvironment::Reply> X>
void visit(V&& v, X& x) {
  v("lease", x.lease);
  v("environment", x.environment);
  v("preload", x.preload);
}

template <class V, Like<ListRequests::Reply> X>
void visit(V&& v, X& x) {
  v("requests", x.requests);
}

template <class V, Like<Cancel> X>
void visit(V&& v, X& x) {
  v("request_id", x.request_id);
}

template <class V, Like<Drain> X>
void visit(V&& v, X& x) {
  v("gpu_ids", x.gpu_ids);
  v("reason", x.reason);
}

template <class V, Like<Undrain> X>
void visit(V&& v, X& x) {
  v("gpu_ids", x.gpu_ids);
}

template <class V, class X>
requires Like<X, ListRequests> || Like<X, CheckRequest::Reply> || Like<X, Cancel::Reply> ||
    Like<X, Drain::Reply> || Like<X, Undrain::Reply>
void visit(V&&, X&) {}

}  // namespace gpurota::proto

// Part of GPUROTA_FOR_EACH_METHOD.
#define GPUROTA_FOR_EACH_QUEUE_METHOD(X) \
  X(Enqueue)                             \
  X(CheckRequest)                        \
  X(GetEnvironment)                      \
  X(ListRequests)                        \
  X(Cancel)                              \
  X(Drain)                               \
  X(Undrain)
