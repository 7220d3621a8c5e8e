#include "lease/request_queue.h"

#include "lease/planner.h"

#include <algorithm>

namespace gpurota::lease {

QueueDecision decide(const QueueView& view, WallTime now) {
  Planner planner(view, now);
  int planned = 0;
  std::vector<Waiting> beyond;
  for (const bool fillers : {false, true}) {
    for (std::size_t i = 0; i < view.queue.size(); ++i) {
      const Request& request = view.queue[i];
      if ((request.kind == LeaseKind::kFiller) != fillers) continue;
      if (++planned <= kMaxPlanned) {
        planner.plan(request, static_cast<int>(i) + 1);
      } else {
        Waiting waiting;
        waiting.request = request.id;
        waiting.position = static_cast<int>(i) + 1;
        waiting.wanted = static_cast<int>(wanted_gpus(request));
        beyond.push_back(std::move(waiting));
      }
    }
  }
  QueueDecision decision = planner.take();
  decision.waiting.insert(decision.waiting.end(), beyond.begin(), beyond.end());
  std::sort(decision.waiting.begin(), decision.waiting.end(),
            [](const Waiting& a, const Waiting& b) { return a.position < b.position; });
  // Positions count those who still wait.
  for (std::size_t i = 0; i < decision.waiting.size(); ++i) {
    decision.waiting[i].position = static_cast<int>(i) + 1;
  }
  return decision;
}

}  // namespace gpurota::lease
