// What a daemon does with the requests that the last one left: the other half of queue.cpp.
#include "base/log.h"
#include "daemon/leases/queue.h"

namespace gpurota::daemon {
namespace {

// Clients try to reach a daemon several times a second; who is not back by then does not wait any
// more, or is stopped.
constexpr Duration kComeBackWithin = std::chrono::seconds(10);

}  // namespace

Result<void> Queue::restore() {
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredRequest> requests,
                           parts_.store.load_requests());
  for (const ports::StoredRequest& stored : requests) GPUROTA_TRY(restore_one(stored));
  if (entries_.empty()) return {};
  auto timer = parts_.loop.add_timer(
      parts_.loop.now() + kComeBackWithin, ports::Urgency::kHousekeeping, [this] {
        std::vector<RequestId> missing;
        for (const QueueEntry& entry : entries_) {
          if (!entry.here) missing.push_back(entry.id);
        }
        for (const RequestId id : missing) {
          leave(id, Error{Code::kGone, 0, "it did not come back after a restart of gpurotad"});
        }
      });
  if (timer) come_back_ = std::move(*timer);
  poke();
  return {};
}

// An error where it cannot be told whether its process lives.
Result<void> Queue::restore_one(const ports::StoredRequest& stored) {
  const RequestId id = stored.id;
  const auto drop = [&](const char* why) -> Result<void> {
    log::info("request is dropped", {{"request", to_string(id)}, {"reason", why}});
    if (auto removed = parts_.store.remove_request(id); !removed) {
      log::error("cannot remove a request from the store, ignoring",
                 {{"request", to_string(id)}, {"error", removed.error().message}});
    }
    return {};
  };
  if (stored.boot_id != parts_.processes.boot_id()) return drop("the machine was restarted");
  GPUROTA_ASSIGN_OR_RETURN(auto holder,
                           unless_gone(track(parts_.processes, stored.holder, [this, id] {
                             leave(id, Error{Code::kGone, 0, "the process that waited is gone"});
                           })));
  if (!holder) return drop("the process that waited ended while the daemon was away");
  QueueEntry entry;
  entry.id = id;
  entry.since = stored.since;
  entry.here = false;
  entry.holder = std::move(*holder);
  entry.asked.uid = stored.uid;
  entry.asked.process = stored.holder;
  entry.asked.placement.count = stored.count;
  entry.asked.placement.gpus = stored.gpus;
  entry.asked.placement.memory = stored.memory;
  entry.asked.placement.soft_limit = stored.soft_limit;
  entry.asked.placement.threshold = stored.threshold;
  entry.asked.placement.swap = stored.swap;
  entry.asked.placement.oversize = stored.oversize;
  entry.asked.priority = stored.priority;
  entry.asked.quantum = stored.quantum;
  if (stored.take_over) entry.asked.placement.take_over = stored.uid;
  entry.asked.note = stored.note;
  entry.asked.command = stored.command;
  entry.asked.kind = parse_lease_kind(stored.kind).value_or(LeaseKind::kRun);
  entry.asked.lasts = stored.lasts;
  entry.asked.as_name = stored.as_name;
  entry.asked.ticket = stored.ticket;
  log::info("request restored", {{"request", to_string(id)}});
  entries_.push_back(std::move(entry));
  return {};
}

}  // namespace gpurota::daemon
