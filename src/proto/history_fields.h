// The fields of findings, events and reports: the part of fields.h about what was.
#pragma once

#include "proto/like.h"
#include "proto/methods.h"

namespace gpurota::proto {

template <class V, Like<FoundProcess> X>
void visit(V&& v, X& x) {
  v("pid", x.pid);
  v("used_bytes", x.used_bytes);
  v("command", x.command);
}

template <class V, Like<Finding> X>
void visit(V&& v, X& x) {
  v("kind", x.kind);
  v("gpu", x.gpu);
  v("gpu_uuid", x.gpu_uuid);
  v("lease_id", x.lease_id);
  v("uid", x.uid);
  v("user", x.user);
  v("since", x.since);
  v("used_bytes", x.used_bytes);
  v("process_count", x.process_count);
  v("action", x.action);
  v("container", x.container);
  v("perhaps_of", x.perhaps_of);
  v("processes", x.processes);
}

template <class V, Like<Event> X>
void visit(V&& v, X& x) {
  v("event_id", x.event_id);
  v("time", x.time);
  v("type", x.type);
  v("lease_id", x.lease_id);
  v("gpu", x.gpu);
  v("gpu_uuid", x.gpu_uuid);
  v("uid", x.uid);
  v("user", x.user);
  v("finding", x.finding);
  v("used_bytes", x.used_bytes);
  v("count", x.count);
  v("message", x.message);
  v("pids", x.pids);
  v("detail", x.detail);
}

template <class V, Like<ReportRow> X>
void visit(V&& v, X& x) {
  v("key", x.key);
  v("leases", x.leases);
  v("gpu_seconds", x.gpu_seconds);
  v("mib_seconds", x.mib_seconds);
}

template <class V, Like<Events> X>
void visit(V&& v, X& x) {
  v("since", x.since);
  v("lease_id", x.lease_id);
  v("follow", x.follow);
  v("after", x.after);
}

template <class V, Like<Events::Reply> X>
void visit(V&& v, X& x) {
  v("events", x.events);
  v("missed", x.missed);
  v("left_out", x.left_out);
}

template <class V, Like<Report> X>
void visit(V&& v, X& x) {
  v("since", x.since);
  v("until", x.until);
  v("by", x.by);
}

template <class V, Like<Report::Reply> X>
void visit(V&& v, X& x) {
  v("since", x.since);
  v("until", x.until);
  v("by", x.by);
  v("rows", x.rows);
}

}  // namespace gpurota::proto
