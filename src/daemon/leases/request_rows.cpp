#include "daemon/leases/request_rows.h"

namespace gpurota::daemon {

ports::StoredRequest row_of(const QueueEntry& entry, const std::string& boot_id) {
  ports::StoredRequest row = row_of(entry.id, entry.asked);
  row.since = entry.since;
  row.holder = entry.holder.id;
  row.boot_id = boot_id;
  return row;
}

ports::StoredRequest row_of(RequestId id, const AcquireRequest& asked) {
  ports::StoredRequest row;
  row.id = id;
  row.uid = asked.uid;
  row.kind = to_string(asked.kind);
  row.ticket = asked.ticket;
  row.count = asked.placement.count;
  row.gpus = asked.placement.gpus;
  row.memory = asked.placement.memory;
  row.soft_limit = asked.placement.soft_limit;
  row.lasts = asked.lasts;
  row.threshold = asked.placement.threshold;
  row.take_over = asked.placement.take_over.has_value();
  row.as_name = asked.as_name;
  row.name = asked.name;
  row.note = asked.note;
  row.command = asked.command;
  row.swap = asked.placement.swap;
  row.oversize = asked.placement.oversize;
  row.wishes = asked.placement.wishes;
  row.priority = asked.priority;
  row.quantum = asked.quantum;
  row.latency = asked.latency;
  row.compute = asked.placement.compute;
  row.warning = asked.warning;
  return row;
}

AcquireRequest asked_of(const ports::StoredRequest& stored) {
  AcquireRequest asked;
  asked.uid = stored.uid;
  asked.process = stored.holder;
  asked.placement.count = stored.count;
  asked.placement.gpus = stored.gpus;
  asked.placement.memory = stored.memory;
  asked.placement.soft_limit = stored.soft_limit;
  asked.placement.threshold = stored.threshold;
  asked.placement.swap = stored.swap;
  asked.placement.oversize = stored.oversize;
  asked.placement.wishes = stored.wishes;
  asked.priority = stored.priority;
  asked.quantum = stored.quantum;
  asked.latency = stored.latency;
  asked.placement.compute = stored.compute;
  asked.warning = stored.warning;
  if (stored.take_over) asked.placement.take_over = stored.uid;
  asked.note = stored.note;
  asked.command = stored.command;
  asked.kind = parse_lease_kind(stored.kind).value_or(LeaseKind::kRun);
  asked.lasts = stored.lasts;
  asked.as_name = stored.as_name;
  asked.name = stored.name;
  asked.ticket = stored.ticket;
  return asked;
}

}  // namespace gpurota::daemon
