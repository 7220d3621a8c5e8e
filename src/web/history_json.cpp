#include "web/history_json.h"

#include "web/json.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace gpurota::web {
namespace {

// The time steps, common to all GPUs.
struct Grid {
  WallTime first;
  std::chrono::seconds step;
  std::size_t count = 0;

  std::size_t index_of(WallTime time) const {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, (time - first) / step));
  }
};

// The answer is never longer, whatever the daemon sends.
constexpr std::size_t kMostSteps = 2000;

Grid grid_of(const proto::History::Reply& history) {
  Grid grid{history.until, std::chrono::seconds(std::max<std::int64_t>(1, history.step_seconds))};
  std::optional<WallTime> last;
  for (const proto::GpuHistory& gpu : history.gpus) {
    for (const proto::GpuPoint& point : gpu.points) {
      grid.first = std::min(grid.first, point.time);
      last = std::max(last.value_or(point.time), point.time);
    }
  }
  if (last) grid.count = std::min(grid.index_of(*last) + 1, kMostSteps);
  return grid;
}

template <class Figure>
Json figures(const Grid& grid, const proto::GpuHistory& gpu, Figure figure) {
  std::vector<Json> column(grid.count, Json{"null"});
  for (const proto::GpuPoint& point : gpu.points) {
    const std::size_t at = grid.index_of(point.time);
    if (at < column.size()) column[at] = to_json(point.*figure);
  }
  return json_array(column, [](const Json& each) { return each; });
}

}  // namespace

std::string history_json(const proto::History::Reply& history) {
  using Point = proto::GpuPoint;
  const Grid grid = grid_of(history);
  const auto gpu_json = [&](const proto::GpuHistory& gpu) {
    return JsonObject()
        .add("uuid", gpu.gpu_uuid.value)
        .add("label", gpu.label)
        .add("utilisation_percent", figures(grid, gpu, &Point::utilisation_percent))
        .add("max_utilisation_percent", figures(grid, gpu, &Point::max_utilisation_percent))
        .add("used_bytes", figures(grid, gpu, &Point::used_bytes))
        .add("max_used_bytes", figures(grid, gpu, &Point::max_used_bytes))
        .add("power_mw", figures(grid, gpu, &Point::power_mw))
        .add("max_power_mw", figures(grid, gpu, &Point::max_power_mw))
        .add("temperature_celsius", figures(grid, gpu, &Point::temperature_celsius))
        .add("max_temperature_celsius", figures(grid, gpu, &Point::max_temperature_celsius))
        .take();
  };
  return JsonObject()
      .add("since", history.since)
      .add("until", history.until)
      .add("first", grid.first)
      .add("step_seconds", grid.step.count())
      .add("steps", grid.count)
      .add("gpus", json_array(history.gpus, gpu_json))
      .take()
      .text;
}

}  // namespace gpurota::web
