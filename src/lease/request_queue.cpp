#include "lease/request_queue.h"

#include "lease/planner.h"

#include <algorithm>
#include <set>

namespace gpurota::lease {

namespace {

// The requests that start at once, or as soon as fillers have left.
std::set<RequestId> starting(const QueueDecision& decision) {
  std::set<RequestId> requests;
  for (const Grant& grant : decision.grants) requests.insert(grant.request);
  for (const Waiting& waiting : decision.waiting) {
    if (waiting.way_made) requests.insert(waiting.request);
  }
  return requests;
}

// Finds the requests that would start if nobody else waited, but do not start. Keeping measures for
// how long.
void find_blocked(const QueueView& view, WallTime now, QueueDecision& decision) {
  KeepingFacts& facts = decision.keeping;
  if (facts.planned_for.empty()) return;
  const auto start = starting(decision);
  Planner alone(view, now);
  std::set<GpuUuid> kept;
  for (const Request& request : view.queue) {
    if (request.kind == LeaseKind::kFiller || start.contains(request.id)) continue;
    const auto gpus = alone.free_for(request);
    if (gpus.empty()) continue;
    facts.blocked.push_back(request.id);
    for (const GpuUuid& gpu : gpus) {
      if (facts.planned_for.contains(gpu)) kept.insert(gpu);
    }
  }
  facts.kept.assign(kept.begin(), kept.end());
}

}  // namespace

QueueDecision decide(const QueueView& view, WallTime now) {
  Planner planner(view, now);
  for (const bool fillers : {false, true}) planner.plan_queue(view.queue.size(), fillers);
  QueueDecision decision = planner.take();
  find_blocked(view, now, decision);
  std::sort(decision.waiting.begin(), decision.waiting.end(),
            [](const Waiting& a, const Waiting& b) { return a.position < b.position; });
  // Positions count only requests that still wait.
  for (std::size_t i = 0; i < decision.waiting.size(); ++i) {
    decision.waiting[i].position = static_cast<int>(i) + 1;
  }
  return decision;
}

}  // namespace gpurota::lease
