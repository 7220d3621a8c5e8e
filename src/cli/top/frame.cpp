#include "cli/top/frame.h"

#include "base/text.h"
#include "cli/status/status_rows.h"
#include "cli/text/output.h"
#include "cli/top/details.h"
#include "cli/top/keys.h"
#include "cli/top/lines.h"
#include "core/local_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gpurota::cli::topview {
namespace {

constexpr std::size_t kAroundRows = 2;  // the title and the names of the columns
constexpr const char* kKeys =
    "? help  / filter  u user  s sort  t tree  e extend  r release  d drain  q quit";

std::string time_of_day(WallTime now) {
  const std::tm local = local_fields(now);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

// "8 GPUs: 1 free, 5 in use".
std::string machine_text(const Answers& answers) {
  std::map<std::string, int> states;
  std::vector<std::string> order;
  int all = 0;
  for (const proto::Gpu& gpu : answers.status.gpus) {
    if (gpu.state == proto::GpuState::kSplit) continue;  // its instances count
    ++all;
    const std::string state = state_cell(gpu.state).text;
    if (states[state]++ == 0) order.push_back(state);
  }
  std::string text = all == 0 ? "no GPU" : fmt::format("{} GPU{}", all, all == 1 ? "" : "s");
  for (const std::string& state : order) {
    text += fmt::format("{}{} {}", state == order.front() ? ": " : ", ", states[state], state);
  }
  const std::uint64_t waiting = answers.status.waiting.value_or(answers.queue.requests.size());
  if (waiting > 0) text += fmt::format("  {} wait{}", waiting, waiting == 1 ? "s" : "");
  return text;
}

void draw_title(Grid& grid, const Model& model, const State& state, const Frame& frame) {
  std::size_t x = grid.put(0, 0, "gpurota top", {Tone::kHead, true});
  x = grid.put(x + 2, 0, display_text(frame.host, 64));
  x = grid.put(x + 2, 0, time_of_day(frame.now));
  if (model.has_answers()) x = grid.put(x + 2, 0, machine_text(model.answers()));
  const Choice& choice = state.choice;
  if (!choice.filter.empty()) {
    x = grid.put(x + 2, 0, "filter: " + display_text(choice.filter, 40), {Tone::kWarning, true});
  }
  if (!choice.user.empty()) {
    x = grid.put(x + 2, 0, "user: " + display_text(choice.user, 40), {Tone::kWarning, true});
  }
  if (choice.sort != Sort::kLease) {
    grid.put(x + 2, 0, fmt::format("by {}", sort_name(choice.sort)), {Tone::kDim});
  }
}

// The first of `rows` to show in `room` lines, so that the chosen row is visible.
std::size_t first_shown(const std::vector<Row>& rows, const Subject& chosen, std::size_t room) {
  if (rows.size() <= room) return 0;
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.about.is_something() && row.about == chosen;
  });
  if (found == rows.end()) return 0;
  const auto at = static_cast<std::size_t>(found - rows.begin());
  return std::min(at > room / 2 ? at - room / 2 : 0, rows.size() - room);
}

// Draws `rows`, beginning at line `y`, in `room` lines. The last line, or the one above the rows,
// counts the rows for which there is no room.
void draw_rows(Grid& grid, std::size_t y, std::size_t room, const std::vector<Row>& rows,
               const Columns& columns, const Model& model, const Subject* chosen) {
  if (room == 0) return;
  const std::size_t first = chosen ? first_shown(rows, *chosen, room) : 0;
  const std::size_t shown = std::min(rows.size(), room);
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = rows[first + i];
    draw_row(grid, y + i, row, columns, model);
    if (chosen && row.about.is_something() && row.about == *chosen) grid.reverse_line(y + i);
  }
  if (rows.size() > room) {
    const std::string more = fmt::format(" ({}-{} of {})", first + 1, first + shown, rows.size());
    const std::size_t wide = display_width(more);
    if (grid.width() > wide) grid.put(grid.width() - wide, y + room - 1, more, {Tone::kDim});
  }
}

// The lines for the lower part of the picture: at most a third of it, or more if the upper part
// leaves room.
std::size_t queue_room(const Rows& rows, std::size_t room) {
  const std::size_t wanted = rows.queue.size();
  const std::size_t left = room > rows.machine.size() ? room - rows.machine.size() : 0;
  return std::min(wanted, std::max(left, room / 3));
}

void draw_nothing(Grid& grid, const Model& model, const State& state) {
  if (!model.has_answers()) {
    grid.put(0, 2, model.trouble().empty() ? "asking the daemon" : "waiting for the daemon");
  } else if (state.choice.filter.empty() && state.choice.user.empty()) {
    grid.put(0, 2, "no GPU ('gpurota doctor' says why)");
  } else {
    grid.put(0, 2, "nothing matches the filter or user");
  }
}

void draw_lists(Grid& grid, std::size_t room, const Model& model, const State& state, bool live) {
  const Rows rows = make_rows(model, state.choice);
  // An empty line separates the two parts.
  const std::size_t gap = rows.queue.empty() || room < 6 ? 0 : 1;
  const std::size_t below = queue_room(rows, room - std::min(room, gap));
  const std::size_t above = room - below - (below > 0 ? gap : 0);
  const Columns columns = columns_for(rows.machine, grid.width());
  draw_titles(grid, 1, columns);
  const Subject* const chosen = live ? &state.chosen : nullptr;
  if (rows.machine.empty()) draw_nothing(grid, model, state);
  draw_rows(grid, kAroundRows, above, rows.machine, columns, model, chosen);
  draw_rows(grid, kAroundRows + above + (below > 0 ? gap : 0), below, rows.queue, columns, model,
            chosen);
}

void draw_footer(Grid& grid, const Model& model, const State& state, const Frame& frame) {
  const std::size_t y = frame.height - 1;
  if (state.asking != Asking::kNothing) {
    const std::size_t x = grid.put(0, y, question(state, model), {Tone::kPlain, true});
    grid.put(grid.put(x, y, display_text(state.typed, 400)), y, " ", {Tone::kPlain, false, true});
  } else if (!state.message.empty()) {
    grid.put(0, y, display_text(state.message, 400),
             {state.refused ? Tone::kBad : Tone::kGood, true});
  } else if (!model.trouble().empty()) {
    std::string text = model.trouble();
    std::replace(text.begin(), text.end(), '\n', ' ');
    grid.put(0, y, "no answer, trying again: " + display_text(text, 400), {Tone::kBad, true});
  } else if (frame.live) {
    grid.put(0, y, kKeys, {Tone::kDim});
  }
}

}  // namespace

std::vector<Subject> subjects(const Rows& rows) {
  std::vector<Subject> found;
  for (const auto* const part : {&rows.machine, &rows.queue}) {
    for (const Row& row : *part) {
      // A lease on two lost GPUs has two lines with the same subject.
      const bool again = !found.empty() && found.back() == row.about;
      if (row.about.is_something() && !again) found.push_back(row.about);
    }
  }
  return found;
}

std::size_t whole_height(const Model& model, const State& state) {
  const Rows rows = make_rows(model, state.choice);
  const std::size_t machine = std::max<std::size_t>(rows.machine.size(), 1);
  const std::size_t queue = rows.queue.empty() ? 0 : rows.queue.size() + 1;
  return kAroundRows + machine + queue + (model.trouble().empty() ? 0 : 1);
}

Grid draw(const Model& model, const State& state, const Frame& frame) {
  Grid grid(frame.width, frame.height);
  draw_title(grid, model, state, frame);
  const bool has_footer = frame.live || !model.trouble().empty();
  const std::size_t around = kAroundRows + (has_footer ? 1 : 0);
  const std::size_t room = frame.height > around ? frame.height - around : 0;
  if (state.help) {
    draw_help(grid, kAroundRows, room);
  } else if (state.details) {
    draw_details(grid, kAroundRows, room, model, state.chosen);
  } else {
    draw_lists(grid, room, model, state, frame.live);
  }
  if (has_footer && frame.height > 0) draw_footer(grid, model, state, frame);
  return grid;
}

}  // namespace gpurota::cli::topview
