// The fields of health_methods.h, and of what doctor checks; see fields.h.
#pragma once

#include "proto/health_methods.h"
#include "proto/like.h"

namespace gpurota::proto {

template <class V, Like<Check> X>
void visit(V&& v, X& x) {
  v("name", x.name);
  v("status", x.status);
  v("summary", x.summary);
  v("remedy", x.remedy);
}

template <class V, Like<EventCount> X>
void visit(V&& v, X& x) {
  v("type", x.type);
  v("count", x.count);
}

template <class V, Like<Waits> X>
void visit(V&& v, X& x) {
  v("bounds_seconds", x.bounds_seconds);
  v("counts", x.counts);
  v("seconds", x.seconds);
}

template <class V, Like<Health> X>
void visit(V&&, X&) {}

template <class V, Like<Health::Reply> X>
void visit(V&& v, X& x) {
  v("since", x.since);
  v("driver_error", x.driver_error);
  v("store_error", x.store_error);
  v("events", x.events);
  v("waits", x.waits);
  v("recovered_bytes", x.recovered_bytes);
  v("loop_longest_us", x.loop_longest_us);
  v("loop_longest_minute_us", x.loop_longest_minute_us);
}

}  // namespace gpurota::proto
