#include "web/more_json.h"

#include "web/json.h"

#include <algorithm>

namespace gpurota::web {
namespace {

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
