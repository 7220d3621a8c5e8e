#include "web/page_json.h"

#include "proto/words.h"
#include "web/json.h"

#include <algorithm>
#include <map>

namespace gpurota::web {
namespace {

// The memory of a GPU by holder; the rest is free, or belongs to no lease.
struct Held {
  Bytes slices, swap;
};

Held held_on(const proto::Gpu& gpu, const std::vector<proto::Lease>& leases) {
  Held held;
  for (const proto::Lease& lease : leases) {
    for (const proto::LeaseGpu& share : lease.gpus) {
      if (!(share.uuid == gpu.uuid)) continue;
      (lease.share == proto::Share::kSwap ? held.swap : held.slices) +=
          share.used_bytes.value_or(Bytes());
    }
  }
  return held;
}

template <class Enum, class Items, class WordOf>
Json counts_by_word(const Items& items, WordOf word_of_item) {
  std::map<std::string, int> counts;
  for (const auto& item : items) counts[to_string(word_of_item(item))] += 1;
  JsonObject object;
  for (const char* word : proto::Words<Enum>::kAll) {
    if (const auto found = counts.find(word); found != counts.end()) {
      object.add(word, found->second);
    }
  }
  return object.take();
}

const proto::TurnGpu* find_turns(const Snapshot& snapshot, const proto::Gpu& gpu) {
  if (!snapshot.turns) return nullptr;
  const auto& gpus = snapshot.turns->gpus;
  const auto found = std::find_if(
      gpus.begin(), gpus.end(), [&](const auto& candidate) { return candidate.uuid == gpu.uuid; });
  return found == gpus.end() ? nullptr : &*found;
}

void add_board(JsonObject& object, const proto::Gpu& gpu) {
  object.add("utilisation_percent", gpu.utilisation_percent)
      .add("power_mw", gpu.power_mw)
      .add("power_limit_mw", gpu.power_limit_mw)
      .add("temperature_celsius", gpu.temperature_celsius)
      .add("slowdown_celsius", gpu.slowdown_celsius)
      .add("sm_clock_mhz", gpu.sm_clock_mhz)
      .add("clock_limits", json_array(gpu.clock_limits.value_or(std::vector<std::string>()),
                                      [](const std::string& limit) { return limit; }))
      .add("ecc_uncorrected", gpu.ecc_uncorrected)
      .add("xid_errors", gpu.xid_errors);
}

Json gpu_json(const Snapshot& snapshot, const proto::Gpu& gpu, PageLevel level) {
  const Held held = held_on(gpu, snapshot.status.leases);
  JsonObject object;
  object.add("label", gpu.label.value_or(std::to_string(gpu.index)))
      .add("uuid", gpu.uuid.value)
      .add("name", gpu.name)
      .add("is_instance", gpu.parent.has_value())
      .add("state", to_string(gpu.state))
      .add("memory_bytes", gpu.memory_bytes)
      .add("used_bytes", gpu.used_bytes)
      .add("unified", gpu.unified.value_or(false))
      .add("reserved_bytes", gpu.reserved_bytes)
      .add("slices_bytes", held.slices)
      .add("swap_bytes", held.swap)
      .add("unreserved_bytes", gpu.unreserved_bytes)
      .add("hidden_bytes", gpu.hidden_bytes)
      .add("available_bytes", gpu.available_bytes)
      .add("swap_available_bytes", gpu.swap_available_bytes)
      .add("leases", gpu.leases.size());
  add_board(object, gpu);
  const proto::TurnGpu* turns = find_turns(snapshot, gpu);
  object.add("takes_turns", turns != nullptr && turns->takes_turns)
      .add("waiting_for_turn", turns != nullptr ? turns->waiting.size() : 0);
  if (shows_names(level)) {
    std::optional<std::string> holder;
    if (turns != nullptr && turns->holder) holder = to_string(*turns->holder);
    object.add("turn_holder", holder);
  }
  return object.take();
}

Json share_json(const proto::LeaseGpu& share) {
  return JsonObject()
      .add("label", share.label.value_or(std::to_string(share.index)))
      .add("uuid", share.uuid.value)
      .add("limit_bytes", share.limit_bytes)
      .add("used_bytes", share.used_bytes)
      .add("processes", share.processes)
      .add("turn", share.turn)
      .add("turn_position", share.turn_position)
      .add("moved_out_bytes", share.moved_out_bytes)
      .add("unused_since", share.unused_since)
      .take();
}

Json lease_json(const proto::Lease& lease) {
  return JsonObject()
      .add("lease_id", to_string(lease.lease_id))
      .add("kind", to_string(lease.kind))
      .add("share", to_string(lease.share))
      .add("state", to_string(lease.state))
      .add("user", lease.user)
      .add("as_name", lease.as_name)
      .add("since", lease.since)
      .add("ends", lease.ends)
      .add("priority", lease.priority)
      .add("gpus", json_array(lease.gpus, share_json))
      .take();
}

Json size_json(const SizeSpec& size) {
  return size.percent > 0 ? JsonObject().add("percent", size.percent).take()
                          : JsonObject().add("bytes", size.bytes).take();
}

std::optional<Json> reason_json(const std::optional<proto::Reason>& reason) {
  if (!reason) return std::nullopt;
  return JsonObject()
      .add("code", to_string(reason->code))
      .add("text", reason->text)
      .add("time", reason->time)
      .add("remedy", reason->remedy)
      .take();
}

Json request_json(const proto::Request& request) {
  std::optional<Json> memory;
  if (request.memory) memory = size_json(*request.memory);
  const auto same = [](const std::string& label) { return label; };
  return JsonObject()
      .add("request_id", to_string(request.request_id))
      .add("position", request.position)
      .add("kind", to_string(request.kind))
      .add("user", request.user)
      .add("as_name", request.as_name)
      .add("since", request.since)
      .add("gpus", request.gpus)
      .add("memory", memory)
      .add("swap", request.swap.value_or(false))
      .add("gpu_type", request.gpu_type)
      .add("gpu_class", request.gpu_class)
      .add("seconds", request.seconds)
      .add("expected", request.expected)
      .add("planned_labels",
           json_array(request.planned_labels.value_or(std::vector<std::string>()), same))
      .add("wait_reason", reason_json(request.wait_reason))
      .add("reason", request.reason)
      .add("next", std::optional<std::string>())  // a part of older sentences
      .take();
}

Json booking_json(const proto::Booking& booking) {
  return JsonObject()
      .add("request_id", to_string(booking.request_id))
      .add("user", booking.user)
      .add("as_name", booking.as_name)
      .add("begins", booking.begins)
      .add("ends", booking.ends)
      .add("wait_reason", reason_json(booking.wait_reason))
      .add("labels", json_array(booking.labels, [](const std::string& label) { return label; }))
      .take();
}

Json queue_json(const std::vector<proto::Request>& requests, PageLevel level) {
  int gpus = 0;
  std::optional<WallTime> oldest;
  for (const proto::Request& request : requests) {
    gpus += request.gpus;
    oldest = std::min(oldest.value_or(request.since), request.since);
  }
  JsonObject object;
  object.add("waiting", requests.size()).add("gpus", gpus).add("oldest_since", oldest);
  if (shows_names(level)) object.add("requests", json_array(requests, request_json));
  return object.take();
}

Json daemon_json(const Snapshot& snapshot) {
  return JsonObject()
      .add("up", true)
      .add("version", snapshot.info.version)
      .add("driver_version", snapshot.info.driver_version)
      .add("since", snapshot.health.since)
      .add("driver_ok", !snapshot.health.driver_error)
      .add("store_ok", !snapshot.health.store_error)
      .take();
}

Json event_json(const proto::Event& event, PageLevel level) {
  JsonObject object;
  object.add("event_id", event.event_id)
      .add("time", event.time)
      .add("type", to_string(event.type))
      .add("gpu", event.gpu)
      .add("count", event.count);
  if (shows_names(level)) {
    std::optional<std::string> lease;
    if (event.lease_id) lease = to_string(*event.lease_id);
    object.add("lease_id", lease).add("user", event.user).add("message", event.message);
  }
  return object.take();
}

// Whether an event is about the machine, and not about a user's work.
bool is_of_machine(const proto::Event& event) { return !event.lease_id && !event.uid; }

void add_hours(JsonObject& object, const proto::ReportRow& row) {
  object.add("leases", row.leases)
      .add("gpu_seconds", row.gpu_seconds)
      .add("used_gpu_seconds", row.used_gpu_seconds)
      .add("idle_gpu_seconds", row.idle_gpu_seconds);
}

Json gpu_hours(const proto::Gpu& gpu, const std::vector<proto::ReportRow>& rows) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const proto::ReportRow& row) {
    return row.key == gpu.uuid.value;
  });
  JsonObject object;
  object.add("label", gpu.label.value_or(std::to_string(gpu.index))).add("uuid", gpu.uuid.value);
  add_hours(object, found == rows.end() ? proto::ReportRow() : *found);
  return object.take();
}

Json user_hours(const proto::ReportRow& row) {
  JsonObject object;
  object.add("user", row.key);
  add_hours(object, row);
  return object.take();
}

Json switch_json(const proto::TurnSwitch& each) {
  return JsonObject()
      .add("time", each.time)
      .add("lease_id", to_string(each.to))
      .add("in_bytes", each.in_bytes)
      .add("out_bytes", each.out_bytes)
      .add("microseconds", each.microseconds)
      .take();
}

Json turn_lease_json(const proto::TurnLease& lease) {
  return JsonObject()
      .add("lease_id", to_string(lease.lease_id))
      .add("user", lease.user)
      .add("phase", lease.phase)
      .add("position", lease.position)
      .add("earliest", lease.earliest)
      .add("limit_bytes", lease.limit_bytes)
      .add("resident_bytes", lease.resident_bytes)
      .add("out_bytes", lease.out_bytes)
      .take();
}

Json turn_gpu_json(const Snapshot& snapshot, const proto::TurnGpu& turns, PageLevel level) {
  const auto& gpus = snapshot.status.gpus;
  const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                [&](const proto::Gpu& each) { return each.uuid == turns.uuid; });
  const std::string label =
      gpu == gpus.end() || !gpu->label ? std::to_string(turns.index) : *gpu->label;
  JsonObject object;
  object.add("label", label)
      .add("uuid", turns.uuid.value)
      .add("takes_turns", turns.takes_turns)
      .add("deficit_bytes", turns.deficit_bytes)
      .add("waiting", turns.waiting.size())
      .add("leases_in_turns", turns.leases.size())
      .add("handovers", turns.handovers)
      .add("evictions", turns.evictions)
      .add("evicted_bytes", turns.evicted_bytes)
      .add("restored_bytes", turns.restored_bytes);
  if (shows_names(level)) {
    std::optional<std::string> holder;
    if (turns.holder) holder = to_string(*turns.holder);
    object.add("holder", holder)
        .add("leases", json_array(turns.leases, turn_lease_json))
        .add("switches", json_array(turns.switches, switch_json));
  }
  return object.take();
}

}  // namespace

std::optional<PageLevel> parse_page_level(std::string_view word) {
  for (const PageLevel level :
       {PageLevel::kNone, PageLevel::kTotals, PageLevel::kNames, PageLevel::kSignedIn}) {
    if (word == to_string(level)) return level;
  }
  return std::nullopt;
}

const char* to_string(PageLevel level) {
  switch (level) {
    case PageLevel::kTotals:
      return "totals";
    case PageLevel::kNames:
      return "names";
    case PageLevel::kSignedIn:
      return "signed-in";
    default:
      return "none";
  }
}

std::string now_json(const std::optional<Snapshot>& snapshot, WallTime now, PageLevel level,
                     std::string_view sign_in, std::size_t machines) {
  JsonObject object;
  object.add("time", now)
      .add("level", to_string(level))
      .add("sign_in", std::string(sign_in))
      .add("machines", machines);
  if (!snapshot) return object.add("daemon", JsonObject().add("up", false).take()).take().text;
  const auto& status = snapshot->status;
  object.add("daemon", daemon_json(*snapshot))
      .add("gpus", json_array(status.gpus,
                              [&](const auto& gpu) { return gpu_json(*snapshot, gpu, level); }))
      .add("leases_by_kind",
           counts_by_word<proto::LeaseKind>(status.leases,
                                            [](const proto::Lease& lease) { return lease.kind; }))
      .add("leases_by_share",
           counts_by_word<proto::Share>(status.leases,
                                        [](const proto::Lease& lease) { return lease.share; }))
      .add("findings",
           counts_by_word<proto::FindingKind>(
               status.findings, [](const proto::Finding& finding) { return finding.kind; }))
      .add("queue", queue_json(snapshot->queue.requests, level));
  if (shows_names(level)) {
    object.add("leases", json_array(status.leases, lease_json))
        .add("bookings",
             json_array(status.bookings.value_or(std::vector<proto::Booking>()), booking_json));
  }
  return object.take().text;
}

std::string events_json(const proto::Events::Reply& events, PageLevel level) {
  std::vector<const proto::Event*> shown;
  for (const proto::Event& event : events.events) {
    if (shows_names(level) || is_of_machine(event)) shown.push_back(&event);
  }
  std::reverse(shown.begin(), shown.end());
  constexpr std::size_t kMost = 500;
  shown.resize(std::min(shown.size(), kMost));
  return JsonObject()
      .add("level", to_string(level))
      .add("events",
           json_array(shown, [&](const auto* event) { return event_json(*event, level); }))
      .take()
      .text;
}

std::string hours_json(const proto::Report::Reply& by_gpu, const proto::Report::Reply& by_user,
                       const std::vector<proto::Gpu>& gpus, PageLevel level) {
  JsonObject object;
  object.add("level", to_string(level))
      .add("since", by_gpu.since)
      .add("until", by_gpu.until)
      .add("gpus", json_array(gpus, [&](const auto& gpu) { return gpu_hours(gpu, by_gpu.rows); }));
  if (shows_names(level)) object.add("users", json_array(by_user.rows, user_hours));
  return object.take().text;
}

std::string turns_json(const Snapshot& snapshot, WallTime now, PageLevel level) {
  const proto::ListTurns::Reply turns = snapshot.turns.value_or(proto::ListTurns::Reply());
  return JsonObject()
      .add("level", to_string(level))
      .add("time", now)
      .add("host_budget_bytes", turns.host_budget_bytes)
      .add("host_out_bytes", turns.host_out_bytes)
      .add("gpus", json_array(turns.gpus,
                              [&](const auto& gpu) { return turn_gpu_json(snapshot, gpu, level); }))
      .take()
      .text;
}

}  // namespace gpurota::web
