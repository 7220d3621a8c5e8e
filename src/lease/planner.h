// Plans requests on the GPUs, one after the other. Used for the decision (request_queue.h), for
// alternatives (ways_out.h) and for what is available (available.h), so that all three agree. Only
// for this module. Pure.
#pragma once

#include "lease/gpu_choice.h"
#include "lease/gpu_plan.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::lease {

// How many GPUs the request wants.
std::size_t wanted_gpus(const Request& request);

class Planner {
 public:
  // Which waiting requests get plans: all, or those whose start is known.
  enum class Plans { kAll, kKnown };

  // `view` must outlive the planner. The constructor plans no request of the queue.
  Planner(const QueueView& view, WallTime now, Plans plans = Plans::kAll);

  // Plans the requests of the queue before this place, in order: only the fillers, or all others.
  // Call it for the fillers last, because they take what is left.
  void plan_queue(std::size_t end, bool fillers = false);
  // Plans a single request that is in no queue.
  void plan(const Request& request, int position);
  QueueDecision take();

  const std::vector<GpuRoom>& rooms() const { return view_.rooms; }
  const std::vector<GpuPlan>& gpus() const { return gpus_; }
  // The uses that the request must not disturb if it starts now.
  GpuPlan::Against against_now(const Request& request) const;
  // The best GPUs that the request can have if it starts at `from`, after all that is planned, for
  // as long as it lasts. If there are too few: what is in the way on the first GPU that it cannot
  // have.
  struct Later {
    std::vector<GpuUuid> gpus;
    std::size_t fitting = 0;
    std::optional<NextFree> obstacle;
    std::string out_of_service;  // as in Waiting
  };
  Later later(const Request& request, WallTime from);
  // The GPUs on which the request would start if it came now; fillers there would leave. Empty: it
  // would wait. Changes nothing.
  std::vector<GpuUuid> start_of(const Request& request) const;
  // The same GPUs as start_of(), so GPUs that fillers would leave are included. Cheaper, as nothing
  // is copied.
  std::vector<GpuUuid> free_for(const Request& request);
  // For each GPU that the request could have: why it cannot start there now; empty: it can.
  std::vector<std::pair<const GpuRoom*, std::string>> obstacles(const Request& request) const;

 private:
  using Against = GpuPlan::Against;
  using Source = GpuPlan::Source;
  using Gpus = std::vector<GpuPlan*>;

  Planner(const QueueView& view, WallTime now, std::vector<GpuPlan> gpus)
      : view_(view), now_(now), gpus_(std::move(gpus)) {}

  GpuPlan* find(const GpuUuid& uuid);
  WallTime until(const Request& request, WallTime from) const {
    return request.lasts ? from + *request.lasts : kNever;
  }
  Against against(const Request& request, WallTime from) const {
    return from == now_ ? against_now(request) : GpuPlan::against(request);
  }

  // The GPUs that can be planned with. If too few: `waiting` gets the reason.
  Gpus usable(const Request& request, Waiting& waiting);
  // Which places of the queue get plans: places of fillers if `fillers`, else those of all other
  // requests. At most kMaxPlanned places.
  std::vector<bool> planned_places(bool fillers) const;
  // For a request beyond kMaxPlanned: it starts now if that delays nobody.
  void try_unplanned(const Request& request, int position);
  std::vector<WallTime> possible_starts(const Request& request, const Gpus& gpus) const;
  std::vector<Candidate> candidates(const Request& request, const Gpus& fitting,
                                    WallTime from) const;
  Gpus choose(const Request& request, const Gpus& fitting, WallTime from);
  bool plan_at(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting);
  bool plan_later(const Request& request, const Gpus& gpus, Waiting& waiting);
  void plan_for_some_day(const Request& request, const Gpus& gpus, Waiting& waiting);
  void start(const Request& request, const Gpus& gpus, Waiting& waiting);
  void make_way(const Request& request, const GpuPlan& gpu);
  bool is_protected(const Request& request, WallTime from) const;
  void keep(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting);
  void hold_for(const Request& request, const Gpus& gpus, WallTime from, Source source,
                Waiting& waiting);
  void explain(const Request& request, const Gpus& gpus, Waiting& waiting);
  std::optional<NextFree> in_the_way(const Request& request, const GpuPlan& gpu,
                                     WallTime from) const;
  std::optional<NextFree> booked_on(const Request& request, const GpuPlan& gpu,
                                    WallTime from) const;
  std::string obstacle_on(const Request& request, const GpuPlan& gpu) const;
  bool is_lapsed(const GpuPlan& gpu) const {
    return view_.keeping && view_.keeping->is_lapsed(gpu.room().info.uuid);
  }
  void mark_held();

  const QueueView& view_;
  WallTime now_;
  Plans plans_ = Plans::kAll;
  std::vector<GpuPlan> gpus_;
  QueueDecision decision_;
  // By GPU: the first request for which the GPU is kept.
  std::map<GpuUuid, std::pair<RequestId, std::string>> kept_for_;
  std::vector<const Request*> unfit_;  // beyond kMaxPlanned; they fit nowhere now
};

}  // namespace gpurota::lease
