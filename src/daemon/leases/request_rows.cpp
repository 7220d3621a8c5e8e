#include "daemon/leases/request_rows.h"

namespace gpurota::daemon {

ports::StoredRequest row_of(const QueueEntry& entry, const std::string& boot_id) {
  ports::StoredRequest row;
  row.id = entry.id;
  row.uid = entry.asked.uid;
  row.kind = to_string(entry.asked.kind);
  row.ticket = entry.asked.ticket;
  row.since = entry.since;
  row.count = entry.asked.placement.count;
  row.gpus = entry.asked.placement.gpus;
  row.memory = entry.asked.placement.memory;
  row.soft_limit = entry.asked.placement.soft_limit;
  row.lasts = entry.asked.lasts;
  row.threshold = entry.asked.placement.threshold;
  row.take_over = entry.asked.placement.take_over.has_value();
  row.as_name = entry.asked.as_name;
  row.name = entry.asked.name;
  row.note = entry.asked.note;
  row.command = entry.asked.command;
  row.holder = entry.holder.id;
  row.boot_id = boot_id;
  row.swap = entry.asked.placement.swap;
  row.oversize = entry.asked.placement.oversize;
  row.wishes = entry.asked.placement.wishes;
  row.priority = entry.asked.priority;
  row.quantum = entry.asked.quantum;
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
