#include "cli/history/history_graphs.h"

#include "base/text.h"
#include "cli/history/figure_sums.h"
#include "cli/history/time_axis.h"
#include "cli/text/bars.h"
#include "cli/text/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace gpurota::cli {
namespace {

constexpr std::size_t kName = 7, kScale = 10;  // columns: "memory ", "140.4 GiB "
constexpr std::size_t kGutter = kName + kScale + 1;
constexpr std::size_t kLeastColumns = 20;

struct Graph {
  const char* name;
  std::string top, bottom;  // labels of its scale
  std::vector<int> percentages;
  Tone tone;
};

// A GPU or a lease with its graphs.
struct Group {
  std::string title;
  std::vector<std::string> figures;
  std::vector<Graph> graphs;
};

bool is_known(const Graph& graph) {
  return std::any_of(graph.percentages.begin(), graph.percentages.end(),
                     [](int each) { return each >= 0; });
}

// Lines of whole pieces; all but the first are indented.
std::vector<std::string> wrapped(const std::vector<std::string>& pieces, const char* between,
                                 std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    const bool fits = !lines.empty() && display_width(lines.back() + between + piece) <= width;
    if (lines.empty()) {
      lines.push_back(piece);
    } else if (fits) {
      lines.back() += between + piece;
    } else {
      lines.push_back("  " + piece);
    }
  }
  return lines;
}

std::string mean_and_most(const char* name, const std::string& mean, const std::string& most) {
  return fmt::format("{} {}, max {}", name, mean, most);
}

template <class Points, class Value>
std::vector<TimedValue> values_of(const Points& points, double whole, const Value& value) {
  std::vector<TimedValue> values;
  for (const auto& point : points) {
    const auto known = value(point);
    values.push_back(
        {point.time, known ? std::optional(static_cast<double>(*known) / whole) : std::nullopt});
  }
  return values;
}

template <class Points>
Graph memory_graph(const Points& points, const Sum& sum, Bytes whole,
                   const proto::History::Reply& reply, std::size_t columns) {
  if (whole.is_zero()) whole = round_size(Bytes(static_cast<std::uint64_t>(sum.most())));
  const auto used = [](const auto& point) -> std::optional<std::uint64_t> {
    if (!point.used_bytes) return std::nullopt;
    return point.used_bytes->count();
  };
  const auto height = static_cast<double>(whole.count());
  return {"memory", to_string(whole), "0",
          percentages_of(values_of(points, height, used), reply, columns), Tone::kSlice};
}

void add_load_and_memory(Group& group, const Sum& load, const Sum& memory) {
  if (!load.empty()) {
    group.figures.push_back(
        mean_and_most("load", percent_text(load, load.mean()), percent_text(load, load.most())));
  }
  if (!memory.empty()) {
    group.figures.push_back(mean_and_most("memory", size_text(memory, memory.mean()),
                                          size_text(memory, memory.most())));
  }
}

Group group_of(const proto::GpuHistory& gpu, const proto::History::Reply& reply,
               const Layout& style, const GpuSizes& sizes, std::size_t columns) {
  const GpuSums sums = sums_of(gpu);
  Group group{"GPU " + display_text(gpu.label.value_or(gpu.gpu_uuid.value), 64), {}, {}};
  if (gpu.points.empty()) {
    group.figures = {"nothing was sampled"};
    return group;
  }
  add_load_and_memory(group, sums.load, sums.memory);
  const auto add = [&group](const Sum& sum, std::string text) {
    if (!sum.empty()) group.figures.push_back(std::move(text));
  };
  add(sums.power, mean_and_most("power", watts_text(sums.power, sums.power.mean()),
                                watts_text(sums.power, sums.power.most())));
  add(sums.heat, "hottest " + heat_text(sums.heat, sums.heat.most(), style.ascii));
  if (sums.limits != "-") group.figures.push_back("limited by " + sums.limits);
  if (sums.errors != "-" && sums.errors != "0") group.figures.push_back(sums.errors);
  const auto load = [](const proto::GpuPoint& point) { return point.utilisation_percent; };
  group.graphs.push_back({"load", "100 %", "0",
                          percentages_of(values_of(gpu.points, 100, load), reply, columns),
                          Tone::kGood});
  const auto size = sizes.find(gpu.gpu_uuid.value);
  group.graphs.push_back(memory_graph(
      gpu.points, sums.memory, size == sizes.end() ? Bytes() : size->second, reply, columns));
  return group;
}

Group group_of(const proto::LeaseHistory& lease, const proto::History::Reply& reply,
               std::size_t columns) {
  const LeaseSums sums = sums_of(lease);
  Group group{to_string(lease.lease_id), {}, {}};
  if (lease.points.empty()) {
    group.figures = {"nothing was sampled"};
    return group;
  }
  add_load_and_memory(group, sums.load, sums.memory);
  if (sums.evictions > 0) {
    group.figures.push_back(fmt::format("evictions {}", sums.evictions));
  }
  if (sums.waited_ms > 0) group.figures.push_back("waited " + waited_text(sums.waited_ms));
  // 100 % is one GPU.
  const double whole = std::max(100.0, std::ceil(sums.load.most() / 100) * 100);
  const auto load = [](const proto::LeasePoint& point) { return point.sm_percent; };
  group.graphs.push_back({"load", fmt::format("{:.0f} %", whole), "0",
                          percentages_of(values_of(lease.points, whole, load), reply, columns),
                          Tone::kGood});
  group.graphs.push_back(memory_graph(lease.points, sums.memory, Bytes(), reply, columns));
  return group;
}

void draw_scale(Grid& grid, std::size_t y, std::size_t rows, const Graph& graph) {
  const auto put_right = [&](std::size_t row, const std::string& text) {
    const std::size_t wide = display_width(text);
    const std::size_t x = kName + kScale - 1 - std::min(wide, kScale - 1);
    grid.put(x, row, text, {Tone::kDim}, kScale - 1);
  };
  grid.put(0, y, graph.name);
  put_right(y, graph.top);
  put_right(y + rows - 1, graph.bottom);
  for (std::size_t row = 0; row < rows; ++row) grid.put(kGutter - 1, y + row, "│", {Tone::kDim});
}

void draw_times(Grid& grid, std::size_t y, const std::vector<TimeTick>& ticks) {
  grid.put(kGutter - 1, y, "└", {Tone::kDim});
  for (std::size_t x = kGutter; x < grid.width(); ++x) grid.put(x, y, "─", {Tone::kDim});
  for (const TimeTick& tick : ticks) {
    grid.put(kGutter + tick.column, y, "┬", {Tone::kDim});
    grid.put(kGutter + tick.column, y + 1, tick.label, {Tone::kDim});
  }
}

// Sized for one screen: higher for one GPU or lease than for many.
std::size_t rows_of_graph(std::size_t groups) {
  if (groups == 1) return 6;
  if (groups == 2) return 4;
  return groups <= 4 ? 3 : 2;
}

std::string drawn(Group group, std::size_t rows, const std::vector<TimeTick>& ticks,
                  const Layout& style) {
  std::erase_if(group.graphs, [](const Graph& graph) { return !is_known(graph); });
  std::vector<std::string> pieces = group.figures;
  if (pieces.empty()) pieces.emplace_back("nothing is known but that it was there");
  pieces.front() = group.title + ": " + pieces.front();
  const auto lines = wrapped(pieces, "; ", style.width);
  const std::size_t below = group.graphs.empty() ? 0 : group.graphs.size() * (rows + 1) + 1;
  Grid grid(style.width, lines.size() + below);
  std::size_t y = 0;
  for (const std::string& line : lines) grid.put(0, y++, display_text(line, 1000), {Tone::kHead});
  for (const Graph& graph : group.graphs) {
    if (&graph != &group.graphs.front()) ++y;  // a gap, so that full graphs do not touch
    draw_scale(grid, y, rows, graph);
    draw_graph(grid, kGutter, y, graph.percentages.size(), rows, graph.percentages, graph.tone);
    y += rows;
  }
  if (!group.graphs.empty()) draw_times(grid, y, ticks);
  if (style.ascii) grid.make_ascii();
  return style.colour ? coloured_text(grid) : plain_text(grid);
}

// The words before the first comma, and the rest as one piece.
std::vector<std::string> pieces_of(const std::string& line) {
  const std::size_t comma = line.find(", ");
  std::istringstream stream(line.substr(0, comma == line.npos ? comma : comma + 1));
  std::vector<std::string> pieces;
  for (std::string word; stream >> word;) pieces.push_back(word);
  if (comma != line.npos) pieces.push_back(line.substr(comma + 2));
  return pieces;
}

}  // namespace

std::size_t graph_columns(std::size_t width) {
  return width < kGutter + kLeastColumns ? 0 : width - kGutter;
}

std::vector<int> percentages_of(const std::vector<TimedValue>& values,
                                const proto::History::Reply& reply, std::size_t count) {
  std::vector<int> columns(count, -1);
  const std::int64_t span = std::max<std::int64_t>((reply.until - reply.since).count(), 1);
  const std::int64_t step = WallTime::duration(std::chrono::seconds(reply.step_seconds)).count();
  const auto wide = static_cast<std::int64_t>(count);
  for (const TimedValue& value : values) {
    if (!value.share) continue;
    const std::int64_t begin = (value.begins - reply.since).count();
    const std::int64_t first = std::max<std::int64_t>(begin * wide / span, 0);
    const std::int64_t end = std::min(((begin + step) * wide + span - 1) / span, wide);
    const int percentage = static_cast<int>(std::lround(std::clamp(*value.share, 0.0, 1.0) * 100));
    for (std::int64_t at = first; at < end; ++at) {
      int& column = columns[static_cast<std::size_t>(at)];
      column = std::max(column, percentage);
    }
  }
  return columns;
}

Bytes round_size(Bytes amount) {
  Bytes size = mib(1);
  while (size < amount) size = Bytes(size.count() * 2);
  return size;
}

std::string graphs_text(const proto::History::Reply& reply, const Layout& style,
                        const GpuSizes& sizes) {
  std::string text;
  const bool known = has_points(reply);
  const std::string head = known ? span_line(reply) : no_points_line(reply);
  for (const std::string& line : wrapped(pieces_of(head), " ", style.width)) text += line + "\n";
  if (!known) return text;
  const std::size_t columns = graph_columns(style.width);
  const std::size_t rows = rows_of_graph(reply.gpus.size() + reply.leases.size());
  const auto ticks = time_ticks(reply.since, reply.until, columns);
  const auto add = [&](Group group) { text += "\n" + drawn(std::move(group), rows, ticks, style); };
  for (const auto& gpu : reply.gpus) add(group_of(gpu, reply, style, sizes, columns));
  for (const auto& lease : reply.leases) add(group_of(lease, reply, columns));
  return text;
}

}  // namespace gpurota::cli
