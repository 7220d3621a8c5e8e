// Plans requests on the GPUs, one after the other. Behind the decision (request_queue.h), what else could be had (ways_out.h)
// and what is available (room.h), so that all three say the same. Of this module only. Pure.
#pragma once

#include "lease/gpu_plan.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::lease {

// How many GPUs the request is for.
std::size_t wanted_gpus(const Request& request);

class Planner {
 public:
  // `view` outlives it. Of its queue nothing is planned yet.
  Planner(const QueueView& view, WallTime now);

  // In the order of the queue, fillers last: they take what is left.
  void plan(const Request& request, int position);
  QueueDecision take();

  const std::vector<GpuRoom>& rooms() const { return view_.rooms; }
  const std::vector<GpuPlan>& gpus() const { return gpus_; }
  // The GPUs that the request can have from then on, behind all that is planned, as long as it lasts; the best of them. Too few:
  // what is in the way of the first that it cannot have.
  struct Later {
    std::vector<GpuUuid> gpus;
    std::size_t fitting = 0;
    std::optional<NextFree> obstacle;
    std::string out_of_service;  // as Waiting's
  };
  Later later(const Request& request, WallTime from);
  // Where the request would start if it came now; fillers there would leave. Empty: it would wait. Changes nothing.
  std::vector<GpuUuid> start_of(const Request& request) const;

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

  // The GPUs that can be planned with. Too few: `waiting` says why.
  Gpus usable(const Request& request, Waiting& waiting);
  std::vector<WallTime> possible_starts(const Request& request, const Gpus& gpus) const;
  Gpus choose(const Request& request, const Gpus& fitting, WallTime from);
  bool plan_at(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting);
  void plan_for_some_day(const Request& request, const Gpus& gpus, Waiting& waiting);
  void start(const Request& request, const Gpus& gpus, Waiting& waiting);
  void make_way(const Request& request, const GpuPlan& gpu);
  void keep(const Request& request, const Gpus& gpus, WallTime from, Waiting& waiting,
            Source source = Source::kPlan);
  void explain(const Request& request, const Gpus& gpus, Waiting& waiting);
  std::optional<NextFree> in_the_way(const Request& request, const GpuPlan& gpu,
                                     WallTime from) const;
  std::optional<NextFree> booked_on(const Request& request, const GpuPlan& gpu,
                                    WallTime from) const;
  std::map<GpuUuid, std::string> kept_for_others(const Request& request, const Gpus& gpus) const;
  void mark_held();

  const QueueView& view_;
  WallTime now_;
  std::vector<GpuPlan> gpus_;
  QueueDecision decision_;
  std::map<GpuUuid, std::pair<RequestId, std::string>> kept_for_;  // by whom first
};

}  // namespace gpurota::lease
