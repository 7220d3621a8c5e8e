#include "cli/top/details.h"

#include "base/text.h"
#include "cli/queue/waiting.h"
#include "cli/status/status_rows.h"
#include "cli/text/bars.h"
#include "cli/text/board_text.h"
#include "cli/text/done_text.h"
#include "cli/text/last_minute_text.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/share_text.h"
#include "cli/text/time_text.h"
#include "cli/top/turns_line.h"
#include "cli/turns/turns_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace gpurota::cli::topview {
namespace {

constexpr std::size_t kLeastGraph = 2;  // lines, without its title
constexpr std::size_t kMostGraph = 12;
constexpr std::size_t kScale = 5;  // columns of "100% "

// Writes line by line, and counts the lines that are left.
class Lines {
 public:
  Lines(Grid& grid, std::size_t y, std::size_t room) : grid_(grid), y_(y), room_(room) {}

  void add(const std::string& text, Style style = {}) {
    if (room_ == 0) return;
    grid_.put(0, y_, display_text(text, 1000), style);
    next(1);
  }
  // A whole sentence, wrapped to as many lines as it needs.
  void add_wrapped(const std::string& text) {
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) {
      if (!line.empty() && display_width(line + " " + word) > grid_.width()) {
        add(line);
        line.clear();
      }
      line += (line.empty() ? "" : " ") + word;
    }
    add(line);
  }
  // "name: value"; nothing if there is no value.
  void add(const char* name, const std::string& value) {
    if (value.empty() || room_ == 0) return;
    const std::size_t x = grid_.put(2, y_, fmt::format("{:<10}", name), {Tone::kHead});
    grid_.put(x, y_, display_text(value, 1000));
    next(1);
  }
  void add_graph(const char* title, const std::vector<int>& values, std::size_t rows) {
    const bool known = std::any_of(values.begin(), values.end(), [](int v) { return v >= 0; });
    if (!known || room_ < rows + 1 || grid_.width() <= kScale + 2) return;
    const std::size_t wide = grid_.width() - kScale - 2;
    const std::size_t shown = std::min(values.size(), wide);
    add(fmt::format("  {}, the last {}", title,
                    duration_text(std::chrono::seconds(static_cast<std::int64_t>(shown)))),
        {Tone::kHead});
    grid_.put(0, y_, "100% │", {Tone::kDim});
    for (std::size_t i = 1; i < rows; ++i) {
      grid_.put(0, y_ + i, i + 1 == rows ? "  0% │" : "     │", {Tone::kDim});
    }
    draw_graph(grid_, kScale + 2, y_, wide, rows, values, Tone::kGraph);
    next(rows);
  }
  // The height of each of this many graphs; 0: there is no room.
  std::size_t graph_rows(std::size_t graphs) const {
    const std::size_t each = room_ / graphs;
    return each < kLeastGraph + 1 ? 0 : std::min(each - 1, kMostGraph);
  }
  void skip() { next(std::min<std::size_t>(room_, 1)); }

 private:
  void next(std::size_t lines) {
    y_ += lines;
    room_ -= lines;
  }

  Grid& grid_;
  std::size_t y_;
  std::size_t room_;
};

void add_graphs(Lines& lines, const History& history) {
  const bool has_load =
      std::any_of(history.load.begin(), history.load.end(), [](int v) { return v >= 0; });
  const std::size_t rows = lines.graph_rows(has_load ? 2 : 1);
  if (rows == 0) return;
  if (has_load) lines.add_graph("load", history.load, rows);
  lines.add_graph("memory", history.memory, rows);
}

std::string used_text(std::optional<Bytes> known, Bytes whole) {
  if (!known) return fmt::format("unknown of {}", to_string(whole));
  const Bytes used = *known;
  return fmt::format("{} of {}", to_string(used, whole), to_string(whole, used));
}

void add_turns(Lines& lines, const Model& model, const GpuUuid& gpu) {
  const proto::TurnGpu* const turns = model.find_turns(gpu);
  if (turns == nullptr) return;
  lines.add(turns_line(*turns, model.answers().when));
  for (const proto::TurnLease& lease : turns->leases) {
    const std::string speed = speed_text(*turns, lease);
    if (!speed.empty()) lines.add(to_string(lease.lease_id) + ": " + speed);
  }
}

void draw_gpu_details(Lines& lines, const Model& model, const proto::Gpu& gpu) {
  lines.add(fmt::format("GPU {}: {}", label_of(gpu), short_name(gpu.name)), {Tone::kPlain, true});
  lines.add("state", state_cell(gpu.state).text);
  lines.add("why", gpu.detail.value_or(""));
  lines.add("memory", used_text(gpu.used_bytes, gpu.memory_bytes) + " used" +
                          (gpu.unified.value_or(false) ? ", with the machine's programs" : ""));
  if (gpu.available_bytes) lines.add("free", to_string(*gpu.available_bytes) + " for a slice");
  if (!gpu.unreserved_bytes.is_zero()) {
    lines.add("no lease", to_string(gpu.unreserved_bytes) + " used without a lease");
  }
  if (gpu.hidden_bytes && !gpu.hidden_bytes->is_zero()) {
    lines.add("hidden", to_string(*gpu.hidden_bytes) + " used by no listed process");
  }
  lines.add("power", power_text(gpu));
  lines.add("heat", heat_text(gpu));
  lines.add("clock", clock_rate_text(gpu));
  lines.add("errors", board_errors_text(gpu));
  lines.add("UUID", gpu.uuid.value);
  lines.add("PCI", gpu.pci);
  add_turns(lines, model, gpu.uuid);
  lines.skip();
  add_graphs(lines, model.history(gpu.uuid));
}

std::string processes_of(const Model& model, LeaseId id) {
  std::string text;
  for (const proto::Process& process : model.answers().processes.processes) {
    if (process.lease_id != id || !process.pid) continue;
    text += fmt::format("{}{}", text.empty() ? "pid " : ", ", *process.pid);
    if (process.used_bytes) text += fmt::format(" ({})", to_string(*process.used_bytes));
  }
  return text;
}

void draw_lease_details(Lines& lines, const Model& model, const proto::Lease& lease,
                        const GpuUuid& gpu) {
  const WallTime now = model.answers().when;
  lines.add(fmt::format("{} of {}: {}, {}", to_string(lease.lease_id),
                        person_text(lease.user, lease.as_name), to_string(lease.kind),
                        to_string(lease.share)),
            {Tone::kPlain, true});
  lines.add("on", gpus_text(lease));
  lines.add("since",
            fmt::format("{} ({})", clock_text(lease.since, now), span_text(now - lease.since)));
  if (lease.ends && *lease.ends <= now) {
    lines.add("ended", fmt::format("{} ({} ago)", clock_text(*lease.ends, now),
                                   span_text(now - *lease.ends)));
  } else if (lease.ends) {
    lines.add("ends", fmt::format("{} (in {})", clock_text(*lease.ends, now),
                                  span_text(*lease.ends - now)));
  }
  lines.add("name", lease.name.value_or(""));
  lines.add("note", lease.note.value_or(""));
  lines.add("model", lease.model.value_or(""));
  if (lease.command) lines.add("command", display_command(*lease.command, 1000));
  lines.add("processes", processes_of(model, lease.lease_id));
  for (const proto::LeaseGpu& share : lease.gpus) {
    if (share.uuid != gpu) continue;
    const proto::Gpu* const whole = model.find_gpu(gpu);
    const Bytes limit = share.limit_bytes.value_or(whole ? whole->memory_bytes : Bytes());
    lines.add("memory", used_text(share.used_bytes, limit));
    const Bytes out = share.moved_out_bytes.value_or(Bytes());
    if (!out.is_zero()) lines.add("moved", to_string(out) + " in host memory");
  }
  if (lease.compute_percent) {
    lines.add("compute", fmt::format("{} % promised", *lease.compute_percent));
  }
  if (lease.compute_max_percent) {
    lines.add("at most", fmt::format("{} % of the compute time", *lease.compute_max_percent));
  }
  lines.add("got", got_text(lease));
  lines.add("held back", held_back_text(lease));
  add_turns(lines, model, gpu);
  lines.skip();
  add_graphs(lines, model.history(lease.lease_id, gpu));
}

void draw_request_details(Lines& lines, const proto::Request& request, WallTime now) {
  lines.add(fmt::format("{} of {}", to_string(request.request_id),
                        person_text(request.user, request.as_name)),
            {Tone::kPlain, true});
  lines.add_wrapped(waiting_text(request, now, true));
  lines.add("since", clock_text(request.since, now));
  lines.add("expected",
            request.expected ? clock_text(*request.expected, now) + " at the latest" : "not known");
  lines.add("place", place_text(request));
  lines.add("note", request.note.value_or(""));
  if (request.command) lines.add("command", display_command(*request.command, 1000));
}

}  // namespace

void draw_details(Grid& grid, std::size_t y, std::size_t room, const Model& model,
                  const Subject& about) {
  Lines lines(grid, y, room);
  for (const proto::Request& request : model.answers().queue.requests) {
    if (request.request_id == about.request) {
      draw_request_details(lines, request, model.answers().when);
    }
  }
  const proto::Lease* const lease = about.lease ? model.find_lease(*about.lease) : nullptr;
  const proto::Gpu* const gpu = about.gpu ? model.find_gpu(*about.gpu) : nullptr;
  if (lease != nullptr) {
    draw_lease_details(lines, model, *lease, about.gpu.value_or(GpuUuid()));
  } else if (gpu != nullptr) {
    draw_gpu_details(lines, model, *gpu);
  }
}

void draw_help(Grid& grid, std::size_t y, std::size_t room) {
  Lines lines(grid, y, room);
  lines.add("↑ ↓ j k", "choose a GPU, a lease or a request; also PgUp, PgDn, Home, End");
  lines.add("Enter", "what there is to say of it, and its last minutes; Esc returns");
  lines.add("/", "show only what has a text; Esc shows all again");
  lines.add("u", "show only what is of one user");
  lines.add("s", "order of leases: by lease, user, memory, time");
  lines.add("t", "the processes of each lease");
  lines.add("e", "change when a lease of yours ends");
  lines.add("r", "release a lease of yours, or cancel a request, after a question");
  lines.add("d", "take a GPU out of service or put it back (only administrators)");
  lines.add("q Ctrl-C", "end; Ctrl-Z: suspend; Ctrl-L: draw anew; F1 F3 F5 F6 F10 as in htop");
  lines.skip();
  lines.add("In the bar of a GPU's memory:");
  lines.add("█", "used by whole GPUs and slices");
  lines.add("▓", "used by leases that take turns");
  lines.add("▒", "used by fillers, which leave for a lease");
  lines.add("×", "used without a lease");
  lines.add("░", "promised to a lease and not used");
  lines.add("·", "free");
  lines.skip();
  lines.add("The load has a bar, and a graph of the time since gpurota top was started.");
}

}  // namespace gpurota::cli::topview
