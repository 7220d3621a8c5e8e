// The fields of filler_methods.h; see fields.h.
#pragma once

#include "proto/filler_methods.h"
#include "proto/queue_fields.h"

namespace gpurota::proto {

template <class V, Like<FillerPlace> X>
void visit(V&& v, X& x) {
  v("gpu", x.gpu);
  v("gpu_uuid", x.gpu_uuid);
  v("state", x.state);
  v("why", x.why);
  v("since", x.since);
  v("lease_id", x.lease_id);
  v("start_at", x.start_at);
}

template <class V, Like<Filler> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("uid", x.uid);
  v("user", x.user);
  v("state", x.state);
  v("detail", x.detail);
  v("command", x.command);
  v("workdir", x.workdir);
  v("variables", x.variables);
  v("gpu_ids", x.gpu_ids);
  v("instances", x.instances);
  v("memory", x.memory);
  v("idle_seconds", x.idle_seconds);
  v("grace_seconds", x.grace_seconds);
  v("on_yield", x.on_yield);
  v("places", x.places);
}

template <class V, Like<AddFiller> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("command", x.command);
  v("workdir", x.workdir);
  v("environment", x.environment);
  v("gpu_ids", x.gpu_ids);
  v("instances", x.instances);
  v("memory", x.memory);
  v("idle_seconds", x.idle_seconds);
  v("grace_seconds", x.grace_seconds);
  v("on_yield", x.on_yield);
}

template <class V, Like<AddFiller::Reply> X>
void visit(V&& v, X& x) {
  v("filler", x.filler);
}

template <class V, Like<ListFillers> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
}

template <class V, Like<ListFillers::Reply> X>
void visit(V&& v, X& x) {
  v("fillers", x.fillers);
}

template <class V, Like<ControlFiller> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
  v("action", x.action);
}

template <class V, Like<ControlFiller::Reply> X>
void visit(V&&, X&) {}

template <class V, Like<ReadFillerLog> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
  v("bytes", x.bytes);
}

template <class V, Like<ReadFillerLog::Reply> X>
void visit(V&& v, X& x) {
  v("text", x.text);
}

}  // namespace gpurota::proto

// Part of GPUROTA_FOR_EACH_METHOD.
#define GPUROTA_FOR_EACH_FILLER_METHOD(X) \
  X(AddFiller) X(ListFillers) X(ControlFiller) X(ReadFillerLog)
