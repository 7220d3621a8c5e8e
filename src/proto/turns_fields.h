// The fields of turns_methods.h; see fields.h.
#pragma once

#include "proto/like.h"
#include "proto/turns_methods.h"

namespace gpurota::proto {

template <class V, Like<TurnLease> X>
void visit(V&& v, X& x) {
  v("lease_id", x.lease_id);
  v("uid", x.uid);
  v("user", x.user);
  v("priority", x.priority);
  v("phase", x.phase);
  v("waits_for", x.waits_for);
  v("behind", x.behind);
  v("pid", x.pid);
  v("position", x.position);
  v("earliest", x.earliest);
  v("quantum_ms", x.quantum_ms);
  v("limit_bytes", x.limit_bytes);
  v("resident_bytes", x.resident_bytes);
  v("out_bytes", x.out_bytes);
  v("wired_bytes", x.wired_bytes);
  v("own_quantum_ms", x.own_quantum_ms);
  v("soft_limit_bytes", x.soft_limit_bytes);
  v("above_soft_limit", x.above_soft_limit);
  v("oversize_bytes", x.oversize_bytes);
  v("hosted_bytes", x.hosted_bytes);
}

template <class V, Like<TurnSwitch> X>
void visit(V&& v, X& x) {
  v("time", x.time);
  v("from", x.from);
  v("to", x.to);
  v("in_bytes", x.in_bytes);
  v("out_bytes", x.out_bytes);
  v("clean_bytes", x.clean_bytes);
  v("microseconds", x.microseconds);
}

template <class V, Like<TurnGpu> X>
void visit(V&& v, X& x) {
  v("index", x.index);
  v("uuid", x.uuid);
  v("mode", x.mode);
  v("takes_turns", x.takes_turns);
  v("capacity_bytes", x.capacity_bytes);
  v("used_bytes", x.used_bytes);
  v("deficit_bytes", x.deficit_bytes);
  v("quantum_ms", x.quantum_ms);
  v("holder", x.holder);
  v("waiting", x.waiting);
  v("leases", x.leases);
  v("switches", x.switches);
  v("evictions", x.evictions);
  v("evicted_bytes", x.evicted_bytes);
  v("restored_bytes", x.restored_bytes);
  v("handovers", x.handovers);
}

template <class V, Like<ListTurns> X>
void visit(V&& v, X& x) {
  v("gpu_ids", x.gpu_ids);
}

template <class V, Like<ListTurns::Reply> X>
void visit(V&& v, X& x) {
  v("gpus", x.gpus);
  v("host_budget_bytes", x.host_budget_bytes);
  v("host_out_bytes", x.host_out_bytes);
}

template <class V, Like<SetGpus> X>
void visit(V&& v, X& x) {
  v("gpu_ids", x.gpu_ids);
  v("capacity", x.capacity);
  v("quantum", x.quantum);
  v("turns", x.turns);
  v("reset", x.reset);
}

template <class V, class X>
requires Like<X, SetGpus::Reply>
void visit(V&&, X&) {}

}  // namespace gpurota::proto
