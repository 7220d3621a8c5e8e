#include "cli/top/lines.h"

#include "base/text.h"
#include "cli/text/bars.h"
#include "cli/text/board_text.h"
#include "cli/text/ps_doctor_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli::topview {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kLeastWhat = 12;
constexpr std::size_t kLoadColumns = 6;  // "  97% "
constexpr std::array<const char*, kLeaseColumns> kTitles = {"LEASE", "USER", "STATE", "MEMORY",
                                                            "GiB",   "TURN", "FOR",   "WHAT"};

std::size_t gap_after(std::size_t column) { return column == kMemoryOf ? 1 : 2; }
bool is_right(std::size_t column) { return column == kMemoryOf || column == kTimeOf; }

std::size_t width_of(const Columns& columns) {
  std::size_t width = kIndent;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] > 0) width += columns[i] + gap_after(i);
  }
  return width;
}

// The memory of a GPU that is in use or promised, by the kind of lease that has it. `promised`: the
// unused part of the limits of leases, except for swap leases, parked leases and fillers.
// `foreign`: used without a lease.
struct Use {
  Bytes sliced, promised, turns, fillers, foreign;
};

Use use_of(const proto::Gpu& gpu, const Answers& answers) {
  Use use;
  use.foreign = gpu.unreserved_bytes;
  for (const proto::Lease& lease : answers.status.leases) {
    for (const proto::LeaseGpu& share : lease.gpus) {
      if (share.uuid != gpu.uuid || lease.parked == proto::ParkState::kParked) continue;
      const Bytes limit = share.limit_bytes.value_or(gpu.memory_bytes);
      const Bytes used = share.used_bytes.value_or(Bytes());
      if (lease.kind == proto::LeaseKind::kFiller) {
        use.fillers += used;
      } else if (lease.share == proto::Share::kSwap) {
        use.turns += used;
      } else {
        use.sliced += used;
        use.promised += limit - used;
      }
    }
  }
  return use;
}

std::string memory_text(const proto::Gpu& gpu) {
  const Bytes beside = gpu.used_bytes.value_or(gpu.memory_bytes);
  return fmt::format("{} / {} GiB",
                     gpu.used_bytes ? gib_text(*gpu.used_bytes, gpu.memory_bytes) : "?",
                     gib_text(gpu.memory_bytes, beside));
}

void draw_memory(Grid& grid, std::size_t x, std::size_t y, std::size_t columns,
                 const proto::Gpu& gpu, const Answers& answers) {
  const Use use = use_of(gpu, answers);
  draw_bar(grid, x, y, columns, gpu.memory_bytes,
           {{use.sliced, "█", Tone::kSlice},
            {use.turns, "▓", Tone::kSwap},
            {use.fillers, "▒", Tone::kFiller},
            {use.foreign, "×", Tone::kForeign},
            {use.promised, "░", Tone::kSlice}});
}

// The widths of the bars in a GPU's line, as parts of the width that is left for them.
struct Bars {
  std::size_t memory, load, spark;
};

Bars bars_for(std::size_t left) {
  if (left < 12) return {left >= 3 ? left : 0, 0, 0};
  Bars bars{};
  bars.memory = std::min<std::size_t>(left * 45 / 100, 60);
  bars.load = left >= 30 ? std::min<std::size_t>(left / 5, 30) : 0;
  const std::size_t used = bars.memory + bars.load + 2;
  bars.spark = left > used ? std::min<std::size_t>(left - used, Model::kMostSamples) : 0;
  return bars;
}

// Draws the load of the GPU, the graph of the load, and the remarks about the GPU at the end of the
// line. The graph gets the room that the remarks leave. `history`: percentages, oldest first. If
// the GPU reports no load, `history` is empty, or its last entry is below zero (not known).
void draw_load(Grid& grid, std::size_t x, std::size_t y, const Bars& bars, const std::string& note,
               const std::vector<int>& history) {
  const int percent = history.empty() ? -1 : history.back();
  if (percent >= 0) {
    grid.put(x, y, fmt::format("{:>4}%", percent));
    const auto load = static_cast<std::uint64_t>(std::min(percent, 100));
    draw_bar(grid, x + kLoadColumns, y, bars.load, Bytes(100), {{Bytes(load), "█", Tone::kGraph}});
  }
  x += kLoadColumns + bars.load + (bars.load > 0 ? 1 : 0);
  const std::size_t noted = std::min(display_width(note), bars.spark);
  const std::size_t graph = bars.spark > noted + 1 ? bars.spark - noted - (noted > 0 ? 1 : 0) : 0;
  draw_graph(grid, x, y, graph, 1, history, Tone::kGraph);
  if (noted > 0) grid.put(x + bars.spark - noted, y, note, {Tone::kDim}, noted);
}

// Remarks about the GPU. The board's power and temperature precede them while a graph still has
// room.
std::string note_of(const Row& row, const proto::Gpu& gpu, const Bars& bars) {
  constexpr std::size_t kLeastBar = 8;
  std::string note = row.cells[1].text;
  for (const std::string& each : {heat_text(gpu), power_text(gpu)}) {
    if (each.empty()) continue;
    const std::string longer = note.empty() ? each : each + "  " + note;
    if (display_width(longer) + kLeastBar > bars.spark) break;
    note = longer;
  }
  return note;
}

void draw_gpu(Grid& grid, std::size_t y, const Row& row, const proto::Gpu& gpu,
              const Model& model) {
  std::size_t x = grid.put(0, y, "GPU " + label_of(gpu), {Tone::kPlain, true});
  x = std::max<std::size_t>(x + 1, 7);
  x = grid.put(x, y, row.cells[0].text, {tone_of(row.cells[0].colour), true});
  x = std::max<std::size_t>(x + 1, 17);
  if (gpu.state == proto::GpuState::kSplit || gpu.state == proto::GpuState::kError) {
    grid.put(x, y, row.cells[1].text, {tone_of(row.cells[0].colour)});
    return;
  }
  const std::string memory = memory_text(gpu);
  const std::size_t wide = std::max<std::size_t>(display_width(memory), 15);
  const std::size_t fixed = x + wide + 1 + kLoadColumns;
  const Bars bars = bars_for(grid.width() > fixed ? grid.width() - fixed : 0);
  if (bars.memory > 0) draw_memory(grid, x, y, bars.memory, gpu, model.answers());
  x += bars.memory + 1;
  grid.put(x + wide - display_width(memory), y, memory);
  draw_load(grid, x + wide + 1, y, bars, note_of(row, gpu, bars), model.history(gpu.uuid).load);
}

}  // namespace

Tone tone_of(Colour colour) {
  switch (colour) {
    case Colour::kGreen:
      return Tone::kGood;
    case Colour::kYellow:
      return Tone::kWarning;
    case Colour::kRed:
      return Tone::kBad;
    case Colour::kDim:
      return Tone::kDim;
    case Colour::kNone:
      break;
  }
  return Tone::kPlain;
}

Columns columns_for(const std::vector<Row>& rows, std::size_t width) {
  Columns columns{};
  for (const Row& row : rows) {
    if (row.kind != RowKind::kLease) continue;
    for (std::size_t i = 0; i < kWhatOf; ++i) {
      columns[i] = std::max(columns[i], display_width(row.cells[i].text));
    }
  }
  for (std::size_t i = 0; i < kWhatOf; ++i) {
    if (columns[i] > 0) columns[i] = std::max(columns[i], display_width(kTitles[i]));
  }
  columns[kUserOf] = std::min<std::size_t>(columns[kUserOf], std::max<std::size_t>(width / 5, 8));
  for (const std::size_t column : {kTimeOf, kTurnOf, kStateOf}) {
    if (width_of(columns) + kLeastWhat > width) columns[column] = 0;
  }
  const std::size_t used = width_of(columns);
  columns[kWhatOf] = width > used ? width - used : 0;
  return columns;
}

void draw_titles(Grid& grid, std::size_t y, const Columns& columns) {
  if (columns[kLeaseOf] == 0) return;  // no leases
  std::size_t x = kIndent;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == 0) continue;
    const std::size_t wide = display_width(kTitles[i]);
    const std::size_t before = is_right(i) && columns[i] > wide ? columns[i] - wide : 0;
    grid.put(x + before, y, kTitles[i], {Tone::kHead}, columns[i] - before);
    x += columns[i] + gap_after(i);
  }
  grid.reverse_line(y);
}

void draw_row(Grid& grid, std::size_t y, const Row& row, const Columns& columns,
              const Model& model) {
  if (row.kind == RowKind::kGpu) {
    const proto::Gpu* const gpu = row.about.gpu ? model.find_gpu(*row.about.gpu) : nullptr;
    if (gpu != nullptr) draw_gpu(grid, y, row, *gpu, model);
    return;
  }
  if (row.kind == RowKind::kText) {
    grid.put(0, y, row.cells.front().text, {tone_of(row.cells.front().colour)});
    return;
  }
  std::size_t x = kIndent;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == 0) continue;
    const std::size_t wide = display_width(row.cells[i].text);
    const std::size_t before = is_right(i) && columns[i] > wide ? columns[i] - wide : 0;
    grid.put(x + before, y, row.cells[i].text, {tone_of(row.cells[i].colour)}, columns[i] - before);
    x += columns[i] + gap_after(i);
  }
}

}  // namespace gpurota::cli::topview
