#include "lease/admission.h"

#include "lease/planner.h"
#include "lease/reason.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::lease {
namespace {

// "1 of 2 GPUs free, 2 asked for", "0 of 2 GPUs have 8 GiB left, 1 asked for".
std::string shortage_text(const PlacementRequest& request, int free, int total) {
  std::string text = fmt::format("{} of {} GPU{} free", free, total, total == 1 ? "" : "s");
  if (!request.gpus.empty()) return text;
  if (request.memory && !request.oversize) {
    const std::string size = request.memory->percent ? fmt::format("{}%", request.memory->percent)
                                                     : to_string(request.memory->bytes);
    text = fmt::format("{} of {} GPU{} ha{} {} left", free, total, total == 1 ? "" : "s",
                       free == 1 ? "s" : "ve", size);
  }
  return fmt::format("{}, {} asked for", text, request.count);
}

Refusal refusal_of(const QueueView& view, std::size_t place, const Waiting& waiting, WallTime now) {
  const Request& request = view.queue[place];
  Planner planner(view, now);
  planner.plan_queue(place);
  Refusal refusal{{Code::kNoGpu, 0, {}}, 0, 0};
  std::string obstacles;
  for (const auto& [room, why] : planner.obstacles(request)) {
    ++refusal.total;
    if (why.empty()) {
      ++refusal.free;
      continue;
    }
    obstacles +=
        fmt::format("{}GPU {} {}", obstacles.empty() ? "" : "; ", name_of(*room, view.rooms), why);
  }
  if (refusal.total == 0) {
    refusal.error.message = "this machine has no GPU that can be leased";
    return refusal;
  }
  const bool one = request.placement.gpus.size() == 1;
  if (!one) {
    const std::string text = shortage_text(request.placement, refusal.free, refusal.total);
    obstacles = obstacles.empty() ? text : text + ": " + obstacles;
  }
  refusal.reason = refusal_reason(waiting, obstacles);
  refusal.error.message = reason_text(*refusal.reason, now);
  return refusal;
}

}  // namespace

Admission admit(const QueueView& view, std::size_t place, WallTime now) {
  const RequestId id = view.queue[place].id;
  QueueDecision decision = decide(view, now);
  Admission admission;
  for (Grant& grant : decision.grants) {
    if (grant.request == id) return {.gpus = std::move(grant.gpus)};
  }
  for (auto& [request, error] : decision.impossible) {
    if (request == id) return {.refusal = Refusal{std::move(error), 0, 0}};
  }
  Waiting waiting;
  for (const Waiting& each : decision.waiting) {
    if (each.request == id) waiting = each;
  }
  admission.refusal = refusal_of(view, place, waiting, now);
  admission.way_made = waiting.way_made.has_value();
  if (admission.way_made) {
    admission.evict = std::move(decision.evict);
    admission.move_out = std::move(decision.move_out);
  }
  return admission;
}

bool starts_beside(const PlacementRequest& placement, const std::vector<GpuRoom>& rooms,
                   const std::vector<Occupant>& leases) {
  const std::vector<Request> nobody;
  const Topology topology;
  const QueueView view{nobody, rooms, leases, topology};
  Request request;
  request.placement = placement;
  return !Planner(view, WallTime{}).start_of(request).empty();
}

}  // namespace gpurota::lease
