#include "daemon/leases/queue.h"

#include "base/log.h"
#include "base/text.h"
#include "daemon/leases/request_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Carrying out a decision may make another one necessary. At most this many decisions are made in a
// row.
constexpr int kMostRounds = 20;
// Clients try to reach a daemon several times a second; a client that has not connected within this
// time has ended its wait, or is stopped.
constexpr Duration kComeBackWithin = std::chrono::seconds(10);

tl::unexpected<lease::Refusal> refuse(Error error) {
  return tl::unexpected<lease::Refusal>(lease::Refusal{std::move(error), 0, 0});
}

// Two leases or requests of a user cannot have the same name.
Result<void> check_name(const AcquireRequest& request, const LeaseTables& tables) {
  if (request.name.empty()) return {};
  const auto taken = [&](const std::string& id) {
    return fail(
        Code::kInvalid,
        fmt::format("{} of yours is called '{}' already: choose another name, or end it first", id,
                    request.name));
  };
  for (const auto& [id, entry] : tables.leases) {
    if (entry.lease.uid == request.uid && entry.lease.name == request.name) {
      return taken(to_string(id));
    }
  }
  for (const QueueEntry& entry : tables.requests) {
    if (entry.asked.uid == request.uid && entry.asked.name == request.name) {
      return taken(to_string(entry.id));
    }
  }
  return {};
}

QueueEntry take_out(std::vector<QueueEntry>& entries, RequestId id) {
  const auto it = std::find_if(entries.begin(), entries.end(),
                               [&](const QueueEntry& entry) { return entry.id == id; });
  QueueEntry entry = std::move(*it);
  entries.erase(it);
  return entry;
}

// The user whose request needs the filler's GPU.
std::string who_needs(LeaseId filler, const lease::QueueDecision& decision,
                      const LeaseTables& tables, ports::Processes& processes) {
  const LeaseEntry* const lease = tables.find(filler);
  for (const lease::Waiting& waiting : decision.waiting) {
    const QueueEntry* const entry =
        waiting.way_made ? tables.find_request(waiting.request) : nullptr;
    if (!entry || !lease) continue;
    for (const GpuUuid& gpu : waiting.planned) {
      if (!lease->lease.find_gpu(gpu)) continue;
      const std::string user = display_text(processes.user_name(entry->asked.uid), 32);
      return fmt::format("{} ({})", user, to_string(entry->id));
    }
  }
  return "somebody";
}

}  // namespace

Result<void> Queue::restore() {
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredRequest> requests,
                           parts_.store.load_requests());
  for (const ports::StoredRequest& stored : requests) {
    if (!stored.begins) GPUROTA_TRY(restore_one(stored));  // otherwise a booking: bookings.h
  }
  clocks_.restore();
  if (tables_.requests.empty()) return {};
  come_back_ = parts_.loop.add_timer(
      parts_.loop.now() + kComeBackWithin, ports::Urgency::kHousekeeping, [this] {
        std::vector<RequestId> missing;
        for (const QueueEntry& entry : tables_.requests) {
          if (!entry.here) missing.push_back(entry.id);
        }
        for (const RequestId id : missing) {
          leave(id, Error{Code::kGone, 0, "it did not come back after a restart of gpurotad"});
        }
      });
  poke();
  return {};
}

// An error if it is not known whether the request's process lives.
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
  entry.asked = asked_of(stored);
  clocks_.restore(id, stored.blocked, stored.protected_for);
  log::info("request restored", {{"request", to_string(id)}});
  tables_.requests.push_back(std::move(entry));
  return {};
}

const QueueEntry* first_planned_on(const std::vector<QueueEntry>& entries,
                                   const std::vector<LeaseGpu>& gpus) {
  for (const QueueEntry& entry : entries) {
    const auto& planned = entry.waiting.planned;
    const bool here = std::any_of(gpus.begin(), gpus.end(), [&](const LeaseGpu& gpu) {
      return std::find(planned.begin(), planned.end(), gpu.uuid) != planned.end();
    });
    if (here) return &entry;
  }
  return nullptr;
}

lease::QueueDecision Queue::decide() {
  clocks_.set_rules(
      {.most = parts_.config.keep_free_gpus, .longest_wait = parts_.config.longest_wait});
  const auto queue = parts_.order.requests();
  const GpuRooms::Machine machine = parts_.rooms.machine();
  return lease::decide(machine.view(queue, tables_.keeping), parts_.wall_clock());
}

bool Queue::would_serve_without(std::optional<LeaseId> lease,
                                std::optional<RequestId> booking) const {
  if (tables_.requests.empty()) return false;
  const auto queue = parts_.order.requests();
  GpuRooms::Machine machine = parts_.rooms.machine();
  std::erase_if(machine.leases, [&](const lease::Occupant& each) { return each.id == lease; });
  std::erase_if(machine.bookings, [&](const lease::Booked& each) { return each.id == booking; });
  const lease::QueueDecision decision =
      lease::decide(machine.view(queue, tables_.keeping), parts_.wall_clock());
  return !decision.grants.empty() ||
         std::any_of(decision.waiting.begin(), decision.waiting.end(),
                     [](const lease::Waiting& waiting) { return waiting.way_made.has_value(); });
}

tl::expected<const LeaseEntry*, lease::Refusal> Queue::acquire(const AcquireRequest& request) {
  const auto within = parts_.allowances.check(request, false);
  if (!within) return refuse(within.error());
  lease::Admission answer = ask(request);
  if (answer.refusal) return tl::unexpected(std::move(*answer.refusal));
  return make(request, std::move(answer.gpus));
}

tl::expected<const LeaseEntry*, lease::Refusal> Queue::make(const AcquireRequest& request,
                                                            std::vector<LeaseGpu> gpus) {
  if (auto counted = parts_.allowances.count_new(request); !counted) {
    return refuse(counted.error());
  }
  return parts_.leases.make(request, std::move(gpus), std::nullopt);
}

bool Queue::make_way(const AcquireRequest& asked) {
  const lease::Admission answer = ask(asked);
  if (!answer.way_made) return false;
  const std::string user = display_text(parts_.processes.user_name(asked.uid), 32);
  send_away(answer.evict, answer.move_out, [&](LeaseId) { return user; });
  return true;
}

lease::Admission Queue::ask(const AcquireRequest& asked) {
  settle();
  const auto queue = parts_.order.requests(&asked);
  const GpuRooms::Machine machine = parts_.rooms.machine();
  return lease::admit(machine.view(queue, tables_.keeping), parts_.order.place_of(asked.uid),
                      parts_.wall_clock());
}

std::optional<Queue::Place> Queue::known(const AcquireRequest& request) {
  if (request.ticket.empty()) return std::nullopt;
  for (const auto& [id, lease] : tables_.leases) {
    if (lease.ticket == request.ticket && lease.lease.uid == request.uid) return Place{&lease, {}};
  }
  for (QueueEntry& entry : tables_.requests) {
    if (entry.asked.ticket == request.ticket && entry.asked.uid == request.uid) {
      entry.here = true;
      return Place{nullptr, &entry};
    }
  }
  return std::nullopt;
}

tl::expected<Queue::Place, lease::Refusal> Queue::enqueue(const AcquireRequest& request) {
  if (auto place = known(request)) return *place;
  const auto named = check_name(request, tables_);
  if (!named) return refuse(named.error());
  const auto check = [&](bool waits) { return parts_.allowances.check(request, waits); };
  if (auto within = check(false); !within) return refuse(within.error());
  lease::Admission answer = ask(request);
  if (!answer.refusal) {
    auto made = make(request, std::move(answer.gpus));
    if (!made) return tl::unexpected(std::move(made).error());
    return Place{*made, nullptr};
  }
  const bool may_wait =
      answer.refusal->error.code == Code::kNoGpu && (!request.at_once || answer.way_made);
  if (!may_wait) return tl::unexpected(std::move(*answer.refusal));
  if (auto within = check(!request.at_once); !within) return refuse(within.error());
  return add(request);
}

tl::expected<Queue::Place, lease::Refusal> Queue::add(const AcquireRequest& request) {
  if (auto counted = parts_.allowances.count_new(request); !counted) return refuse(counted.error());
  const auto id = parts_.store.next_request_id();
  if (!id) {
    parts_.leases.check_store();
    return refuse(Error(id.error()).context("cannot queue the request"));
  }
  QueueEntry entry;
  entry.id = *id;
  entry.asked = request;
  entry.since = std::min(request.waits_since.value_or(WallTime::max()), parts_.wall_clock());
  auto holder = track(parts_.processes, request.process, [this, id = *id] {
    leave(id, Error{Code::kGone, 0, "the process that waited is gone"});
  });
  if (!holder) return refuse(std::move(holder).error().context("cannot follow the caller"));
  entry.holder = std::move(*holder);
  // An `at_once` request is not stored, because it need not outlive this daemon.
  if (auto saved = request.at_once
                       ? Result<void>()
                       : parts_.store.save_request(row_of(entry, parts_.processes.boot_id()));
      !saved) {
    return refuse(std::move(saved).error().context("cannot store the request"));
  }
  // The request goes to the end of the queue, or to its old place if it has waited before.
  const auto before = std::find_if(
      tables_.requests.begin(), tables_.requests.end(),
      [&](const QueueEntry& other) { return request.waits_since && other.since > entry.since; });
  tables_.requests.insert(before, std::move(entry));
  log::info("request waits", {{"request", to_string(*id)}, {"uid", request.uid}});
  settle();
  if (const QueueEntry* waiting = tables_.find_request(*id)) return Place{nullptr, waiting};
  // The request has been served meanwhile, or refused.
  if (auto place = known(request)) return *place;
  return refuse({Code::kNoGpu, 0, "the request was dropped as soon as it was made"});
}

void Queue::leave(RequestId id, const Error& why, std::optional<Author> by) {
  if (!tables_.find_request(id)) return;
  count_time();
  QueueEntry entry = take_out(tables_.requests, id);
  clocks_.forget(id);
  entry.cancelled_by = std::move(by);
  log::info("request leaves the queue",
            {{"request", to_string(id)}, {"uid", entry.asked.uid}, {"reason", why.message}});
  if (auto removed = parts_.store.remove_request(id); !removed) {
    log::error("cannot remove a request from the store, the next start will",
               {{"request", to_string(id)}, {"error", removed.error().message}});
  }
  parts_.publish({.step = RequestStep::kGone, .request = entry, .why = &why});
  poke();
}

void Queue::poke() {
  if (poked_ || (tables_.requests.empty() && tables_.held.empty())) return;
  poked_ = true;
  parts_.loop.post([this] {
    poked_ = false;
    settle();
  });
}

void Queue::settle() {
  settle_now();
  parts_.on_settled();
}

void Queue::settle_now() {
  count_time();
  if (tables_.requests.empty()) {
    tables_.held.clear();
    tables_.plans.clear();
    clocks_.set_facts({});
    return;
  }
  for (int round = 0; round < kMostRounds; ++round) {
    parts_.order.sort(tables_.requests);
    const lease::QueueDecision decision = decide();
    if (carry_out(decision)) continue;
    clocks_.set_facts(decision.keeping);
    remember(decision);
    return decide_again_in_time();
  }
  log::warn("the queue has not settled, continuing later");
  poke();
}

// Returns whether anything has changed, so that a new decision is needed.
bool Queue::carry_out(const lease::QueueDecision& decision) {
  for (const auto& [id, error] : decision.impossible) leave(id, error);
  for (const lease::Grant& each : decision.grants) grant(each);
  send_away(decision.evict, decision.move_out,
            [&](LeaseId filler) { return who_needs(filler, decision, tables_, parts_.processes); });
  for (const lease::Waiting& waiting : decision.waiting) {
    if (waiting.planned.empty()) continue;
    const QueueEntry* entry = tables_.find_request(waiting.request);
    if (!entry) continue;
    const std::string user = display_text(parts_.processes.user_name(entry->asked.uid), 32);
    yield_expired(tables_, parts_.leases, parts_.config, waiting.planned,
                  fmt::format("{} ({})", user, to_string(entry->id)));
  }
  return !decision.grants.empty() || !decision.impossible.empty();
}

void yield_expired(const LeaseTables& tables, LeaseManager& leases, const config::Config& config,
                   const std::vector<GpuUuid>& gpus, const std::string& to_whom) {
  if (config.expired_reservation != config::Expired::kYield) return;
  std::vector<LeaseId> yielding;
  for (const auto& [id, entry] : tables.leases) {
    const bool there = std::any_of(
        gpus.begin(), gpus.end(),
        [&lease = entry.lease](const auto& gpu) { return lease.find_gpu(gpu) != nullptr; });
    if (there && entry.lease.state == LeaseState::kExpired) yielding.push_back(id);
  }
  for (const LeaseId id : yielding) {
    leases.end(id, EndCause::kExpired, "its time was over, and " + to_whom + " waits for its GPUs");
  }
}

void Queue::grant(const lease::Grant& grant) {
  if (!tables_.find_request(grant.request)) return;
  const QueueEntry entry = take_out(tables_.requests, grant.request);
  clocks_.on_start(entry.id, grant.gpus);
  const auto made = parts_.leases.make(entry.asked, grant.gpus, entry.id);
  if (made) {
    log::info("request is served", {{"request", to_string(entry.id)},
                                    {"uid", entry.asked.uid},
                                    {"lease", to_string((*made)->lease.id)}});
    parts_.publish({.step = RequestStep::kGranted, .request = entry, .lease = *made});
    return;
  }
  log::error("a request cannot be served",
             {{"request", to_string(entry.id)}, {"error", made.error().error.message}});
  (void)parts_.store.remove_request(entry.id);
  parts_.publish({.step = RequestStep::kGone, .request = entry, .why = &made.error().error});
}

void Queue::send_away(const std::vector<LeaseId>& evict, const std::vector<LeaseId>& move_out,
                      const std::function<std::string(LeaseId)>& for_whom) {
  for (const LeaseId filler : evict) {
    parts_.leases.end(filler, EndCause::kReleased, for_whom(filler) + " needs its GPU");
  }
  for (const LeaseId filler : move_out) {
    parts_.move_out(filler, for_whom(filler) + " needs its GPU");
  }
}

void Queue::count_time() {
  clocks_.count([this](RequestId id) {
    const QueueEntry* const entry = tables_.find_request(id);
    if (!entry || entry->asked.at_once) return;
    ports::StoredRequest row = row_of(*entry, parts_.processes.boot_id());
    row.blocked = tables_.keeping.blocked(id);
    row.protected_for = tables_.keeping.protected_for(id);
    if (auto saved = parts_.store.save_request(row); !saved) {
      log::warn("cannot store for how long a request has been blocked, continuing",
                {{"request", to_string(id)}, {"error", saved.error().message}});
    }
  });
}

void Queue::decide_again_in_time() {
  keep_timer_.reset();
  std::optional<TimePoint> first;
  if (const auto after = clocks_.next()) first = parts_.loop.now() + *after;
  if (const auto after = parts_.order.changes_after()) {
    first = std::min(first.value_or(TimePoint::max()), parts_.loop.now() + *after);
  }
  if (!first) return;
  keep_timer_ = parts_.loop.add_timer(*first, ports::Urgency::kSchedule, [this] { settle(); });
}

// Drops requests that may wait only for fillers, and would now have to wait for something else.
void Queue::drop_impatient(const lease::QueueDecision& decision) {
  for (const lease::Waiting& waiting : decision.waiting) {
    QueueEntry* const entry = tables_.find_request(waiting.request);
    if (!entry || !entry->asked.at_once || waiting.way_made) continue;
    entry->waiting = waiting;
    entry->reason = lease::waiting_reason(waiting);
    leave(waiting.request, Error{Code::kNoGpu, 0, reason_text(entry->reason, parts_.wall_clock())});
  }
}

void Queue::remember(const lease::QueueDecision& decision) {
  tables_.held = decision.held;
  tables_.plans = decision.plans;
  drop_impatient(decision);
  // Keep ids, not pointers: publish() may remove a request.
  std::vector<RequestId> changed;
  for (const lease::Waiting& waiting : decision.waiting) {
    QueueEntry* const it = tables_.find_request(waiting.request);
    if (!it) continue;
    const lease::Reason reason = lease::waiting_reason(waiting);
    if (reason != it->reason || waiting.position != it->waiting.position) {
      changed.push_back(it->id);
    }
    it->reason = reason;
    it->waiting = waiting;
  }
  for (const RequestId id : changed) {
    if (const QueueEntry* entry = tables_.find_request(id)) {
      parts_.publish({.step = RequestStep::kWaits, .request = *entry});
    }
  }
}

}  // namespace gpurota::daemon
