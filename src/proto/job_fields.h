// The fields of job_methods.h; see fields.h.
#pragma once

#include "proto/job_methods.h"
#include "proto/queue_fields.h"

namespace gpurota::proto {

template <class V, Like<JobRun> X>
void visit(V&& v, X& x) {
  v("started", x.started);
  v("ended", x.ended);
  v("reason", x.reason);
  v("code", x.code);
  v("detail", x.detail);
}

template <class V, Like<Job> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("uid", x.uid);
  v("user", x.user);
  v("state", x.state);
  v("detail", x.detail);
  v("command", x.command);
  v("options", x.options);
  v("workdir", x.workdir);
  v("variables", x.variables);
  v("restart", x.restart);
  v("after", x.after);
  v("output", x.output);
  v("since", x.since);
  v("lease_id", x.lease_id);
  v("request_id", x.request_id);
  v("position", x.position);
  v("failures", x.failures);
  v("runs", x.runs);
}

template <class V, Like<JobDefinition> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("command", x.command);
  v("options", x.options);
  v("workdir", x.workdir);
  v("environment", x.environment);
  v("variables", x.variables);
  v("restart", x.restart);
  v("after", x.after);
  v("output", x.output);
  v("start", x.start);
}

template <class V, Like<JobChange> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("change", x.change);
}

template <class V, Like<AddJob> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("command", x.command);
  v("options", x.options);
  v("workdir", x.workdir);
  v("environment", x.environment);
  v("restart", x.restart);
  v("after", x.after);
  v("output", x.output);
}

template <class V, Like<AddJob::Reply> X>
void visit(V&& v, X& x) {
  v("job", x.job);
}

template <class V, Like<ListJobs> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
}

template <class V, Like<ListJobs::Reply> X>
void visit(V&& v, X& x) {
  v("jobs", x.jobs);
}

template <class V, Like<ControlJob> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
  v("action", x.action);
  v("force", x.force);
}

template <class V, Like<ControlJob::Reply> X>
void visit(V&&, X&) {}

template <class V, Like<ReadJobLog> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
  v("bytes", x.bytes);
  v("cursor", x.cursor);
}

template <class V, Like<ReadJobLog::Reply> X>
void visit(V&& v, X& x) {
  v("text", x.text);
  v("cursor", x.cursor);
  v("missed", x.missed);
}

template <class V, Like<UpdateJob> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
  v("command", x.command);
  v("options", x.options);
  v("workdir", x.workdir);
  v("environment", x.environment);
  v("restart", x.restart);
  v("after", x.after);
  v("output", x.output);
  v("memory", x.memory);
  v("soft_limit", x.soft_limit);
  v("note", x.note);
  v("seconds", x.seconds);
  v("priority", x.priority);
  v("quantum", x.quantum);
}

template <class V, Like<UpdateJob::Reply> X>
void visit(V&& v, X& x) {
  v("job", x.job);
  v("live", x.live);
}

template <class V, Like<ExportJobs> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("user", x.user);
  v("secrets", x.secrets);
}

template <class V, Like<ExportJobs::Reply> X>
void visit(V&& v, X& x) {
  v("jobs", x.jobs);
}

template <class V, Like<ApplyJobs> X>
void visit(V&& v, X& x) {
  v("jobs", x.jobs);
}

template <class V, Like<ApplyJobs::Reply> X>
void visit(V&& v, X& x) {
  v("changes", x.changes);
}

// Part of GPUROTA_FOR_EACH_METHOD.
#define GPUROTA_FOR_EACH_JOB_METHOD(X) \
  X(AddJob)                            \
  X(ListJobs)                          \
  X(ControlJob)                        \
  X(UpdateJob)                         \
  X(ExportJobs)                        \
  X(ApplyJobs)                         \
  X(ReadJobLog)

}  // namespace gpurota::proto
