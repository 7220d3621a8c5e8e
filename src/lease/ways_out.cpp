#include "lease/ways_out.h"

#include "lease/planner.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace gpurota::lease {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Less memory is of no use to a program.
constexpr Bytes kLeastMemory = mib(256);

// A round number, as people would write it.
Bytes rounded_down(Bytes bytes) {
  const Bytes unit = bytes < gib(1) ? kLeastMemory : gib(1);
  return Bytes(bytes.count() / unit.count() * unit.count());
}

class Search {
 public:
  Search(const Planner& planner, const Request& request, WallTime now)
      : planner_(planner), request_(request), now_(now), against_(planner.against_now(request)) {}

  void try_time() {
    const auto until = nth_best<WallTime>(
        [&](const GpuPlan& gpu) { return gpu.free_until(request_, against_).value_or(now_); });
    if (!until || *until == kNever) return;
    const auto lasts = std::chrono::floor<minutes>(*until - now_);
    if (lasts < minutes(1)) return;
    offer({.kind = WayOut::Kind::kTime, .lasts = lasts});
  }
  void try_other_gpus() {
    if (request_.placement.gpus.empty()) return;
    offer({.kind = WayOut::Kind::kOtherGpus});
  }
  void try_memory() {
    Request sized = request_;
    sized.placement.memory = SizeSpec{kLeastMemory, 0};
    sized.placement.oversize = false;
    sized.placement.soft_limit.reset();
    const WallTime until = request_.lasts ? now_ + *request_.lasts : kNever;
    const auto most =
        nth_best<Bytes>([&](const GpuPlan& gpu) { return gpu.most(sized, until, against_); });
    const Bytes memory = rounded_down(most.value_or(Bytes()));
    if (memory.is_zero()) return;
    offer({.kind = WayOut::Kind::kMemory, .memory = memory});
  }
  void try_swap() {
    if (request_.placement.swap || request_.placement.exclusive()) return;
    offer({.kind = WayOut::Kind::kSwap});
  }
  // The largest share with which the request starts. A smaller one always fits if a larger does.
  void try_compute() {
    const int wanted = request_.placement.compute.least;
    if (wanted == 0 || !starts({.kind = WayOut::Kind::kCompute})) return;
    int fits = 0, too_much = wanted;
    while (too_much - fits > 1) {
      const int middle = (fits + too_much) / 2;
      (starts({.kind = WayOut::Kind::kCompute, .compute = middle}) ? fits : too_much) = middle;
    }
    offer({.kind = WayOut::Kind::kCompute, .compute = fits});
  }
  void try_count() {
    if (!request_.placement.gpus.empty()) return;
    const WallTime until = request_.lasts ? now_ + *request_.lasts : kNever;
    const auto fitting = std::count_if(
        planner_.gpus().begin(), planner_.gpus().end(),
        [&](const GpuPlan& gpu) { return gpu.fits(request_, now_, until, against_); });
    const auto all = static_cast<std::ptrdiff_t>(wanted_gpus(request_));
    for (auto count = static_cast<int>(std::min(fitting, all - 1)); count > 0; --count) {
      if (offer({.kind = WayOut::Kind::kCount, .count = count})) return;
    }
  }
  std::vector<WayOut> take() { return std::move(found_); }

 private:
  // The best value that is reached by as many GPUs as the request wants; nothing: too few GPUs.
  template <class Value>
  std::optional<Value> nth_best(const std::function<Value(const GpuPlan&)>& value) const {
    const auto rooms = meant(request_.placement, planner_.rooms());
    std::vector<Value> values;
    for (const GpuPlan& gpu : planner_.gpus()) {
      if (std::find(rooms.begin(), rooms.end(), &gpu.room()) == rooms.end()) continue;
      if (!leasable(gpu.room()) || !out_of_service(request_.placement, gpu.room()).empty())
        continue;
      values.push_back(value(gpu));
    }
    const std::size_t count = wanted_gpus(request_);
    if (values.size() < count) return std::nullopt;
    std::sort(values.begin(), values.end(), std::greater<>());
    return values[count - 1];
  }

  // The GPUs on which the request starts with this change; empty: none.
  std::vector<GpuUuid> start_with(const WayOut& way) const {
    Request trial = request_;
    trial.placement = changed(trial.placement, way);
    if (way.kind == WayOut::Kind::kTime) {
      trial.lasts = way.lasts;
      trial.unbooked_for.reset();
    }
    return planner_.start_of(trial);
  }
  bool starts(const WayOut& way) const { return !start_with(way).empty(); }
  bool offer(WayOut way) {
    way.gpus = start_with(way);
    if (way.gpus.empty()) return false;
    found_.push_back(std::move(way));
    return true;
  }

  const Planner& planner_;
  const Request& request_;
  WallTime now_;
  GpuPlan::Against against_;
  std::vector<WayOut> found_;
};

}  // namespace

PlacementRequest changed(PlacementRequest placement, const WayOut& way) {
  switch (way.kind) {
    case WayOut::Kind::kTime:
      break;
    case WayOut::Kind::kOtherGpus:
      placement.count = static_cast<int>(placement.gpus.size());
      placement.gpus.clear();
      break;
    case WayOut::Kind::kMemory:
      placement.memory = SizeSpec{way.memory, 0};
      placement.oversize = false;
      placement.soft_limit.reset();
      break;
    case WayOut::Kind::kSwap:
      placement.swap = true;
      break;
    case WayOut::Kind::kCount:
      placement.count = way.count;
      break;
    case WayOut::Kind::kCompute:
      placement.compute.least = way.compute;
      break;
  }
  return placement;
}

std::vector<WayOut> ways_out(const QueueView& view, std::size_t place, bool end_is_kept,
                             WallTime now) {
  const Request& request = view.queue[place];
  // A filler has no claim to a GPU.
  if (request.kind == LeaseKind::kFiller) return {};
  Planner planner(view, now);
  planner.plan_queue(place);
  if (!planner.start_of(request).empty()) return {};
  Search search(planner, request, now);
  if (end_is_kept) search.try_time();
  search.try_other_gpus();
  search.try_memory();
  search.try_swap();
  search.try_count();
  search.try_compute();
  return search.take();
}

}  // namespace gpurota::lease
