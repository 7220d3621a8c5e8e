#include "cli/top/rows.h"

#include "base/text.h"
#include "cli/queue/queue_text.h"
#include "cli/status/status_rows.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/share_text.h"
#include "cli/text/time_text.h"
#include "cli/top/turns_line.h"
#include "client/reason_text.h"
#include "core/local_time.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli::topview {
namespace {

constexpr std::size_t kLongestLine = 400;

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// Whether a line is shown: its text contains the filter's text.
bool passes(const std::vector<Cell>& cells, const std::string& filter) {
  if (filter.empty()) return true;
  std::string all;
  for (const Cell& cell : cells) all += cell.text + " ";
  return lower_case(all).find(lower_case(filter)) != std::string::npos;
}

bool is_of_user(const std::string& user, const Choice& choice) {
  return choice.user.empty() || user == choice.user;
}

Row text_row(std::string text, Colour colour = Colour::kNone, Subject about = {}) {
  return {RowKind::kText, std::move(about), {{display_text(text, kLongestLine), colour}}};
}

std::string process_text(const proto::Process& process, bool last) {
  return fmt::format("{}─ {} {} {} {}", last ? "└" : "├",
                     process.pid ? "pid " + std::to_string(*process.pid) : "a process",
                     display_text(process.user.value_or("?"), 32),
                     process.used_bytes ? to_string(*process.used_bytes) : "memory not known",
                     process.command ? display_command(*process.command, 160) : std::string());
}

// The GPUs and what runs on each. status_rows() has a row for each lease, and names the GPU in the
// first of its rows.
class MachineRows {
 public:
  MachineRows(const Model& model, const Choice& choice)
      : model_(model), answers_(model.answers()), choice_(choice) {}

  std::vector<Row> make() const {
    const std::vector<std::vector<Cell>> lines = status_rows(answers_.status, answers_.when);
    std::vector<Row> rows;
    std::size_t at = 0;
    for (const proto::Gpu& gpu : answers_.status.gpus) {
      std::size_t end = at + 1;
      while (end < lines.size() && lines[end][kGpu].text.empty()) ++end;
      add_gpu(rows, gpu, {lines.begin() + as_offset(at), lines.begin() + as_offset(end)});
      at = end;
    }
    for (; at < lines.size(); ++at) add_lost(rows, lines[at]);
    return rows;
  }

 private:
  using Line = std::vector<Cell>;

  static std::ptrdiff_t as_offset(std::size_t at) { return static_cast<std::ptrdiff_t>(at); }

  void add_gpu(std::vector<Row>& rows, const proto::Gpu& gpu, std::vector<Line> lines) const {
    Row head;
    head.kind = RowKind::kGpu;
    head.about.gpu = gpu.uuid;
    head.cells = {state_cell(gpu.state), Cell{}};
    if (lines.front()[kLease].text.empty()) {
      // The first line is about the GPU itself, and not about a lease.
      head.cells[1] = lines.front()[kWhat];
      head.cells[1].text = display_text(head.cells[1].text);
      if (head.cells[1].text.empty() && !lines.front()[kFor].text.empty()) {
        head.cells[1].text = "for " + lines.front()[kFor].text;
      }
      lines.erase(lines.begin());
    }
    std::vector<Row> below;
    for (const Line& line : lines) {
      Row row = lease_row_of(line, gpu.uuid);
      const std::string user = user_of(row);
      if (is_of_user(user, choice_) && passes(row.cells, choice_.filter)) below.push_back(row);
    }
    sort(below, gpu.uuid);
    const bool named =
        passes({{"gpu " + label_of(gpu) + " " + gpu.name}, head.cells[0]}, choice_.filter) &&
        choice_.user.empty();
    if (below.empty() && !named) return;
    rows.push_back(std::move(head));
    const proto::TurnGpu* const turns = model_.find_turns(gpu.uuid);
    if (turns) {
      const std::string line = turns_line(*turns, answers_.when);
      if (!line.empty()) rows.push_back(text_row("  " + line, Colour::kDim));
    }
    for (Row& row : below) add_with_processes(rows, std::move(row), gpu.uuid);
  }

  void add_lost(std::vector<Row>& rows, const Line& line) const {
    Row row = lease_row_of(line, {});
    row.about.gpu.reset();
    if (!is_of_user(user_of(row), choice_) || !passes(row.cells, choice_.filter)) return;
    if (line[kGpu].text == "?" && (rows.empty() || rows.back().kind != RowKind::kLease ||
                                   rows.back().cells[kStateOf].text != "LOST")) {
      rows.push_back(text_row("on GPUs that the driver no longer shows:", Colour::kRed));
    }
    rows.push_back(std::move(row));
  }

  Row lease_row_of(const Line& line, const GpuUuid& gpu) const {
    Row row;
    row.kind = RowKind::kLease;
    row.about.gpu = gpu;
    row.about.lease = lease_named(line[kLease].text);
    row.cells.resize(kLeaseColumns);
    row.cells[kLeaseOf] = line[kLease];
    row.cells[kUserOf] = line[kUser];
    row.cells[kStateOf] = line[kState];
    row.cells[kMemoryOf] = line[kUsed];
    row.cells[kSizeOf] = line[kSize];
    row.cells[kTurnOf] = line[kTurn];
    row.cells[kTimeOf] = line[kFor];
    row.cells[kWhatOf] = line[kWhat];
    const proto::TurnGpu* const turns = model_.find_turns(gpu);
    if (turns && row.about.lease) {
      const std::string turn = turn_of(*turns, *row.about.lease, answers_.when);
      if (!turn.empty()) row.cells[kTurnOf].text = turn;
    }
    for (Cell& cell : row.cells) cell.text = display_text(cell.text);
    if (!row.about.lease) row.about = {};
    return row;
  }

  std::optional<LeaseId> lease_named(const std::string& name) const {
    for (const proto::Lease& lease : answers_.status.leases) {
      if (to_string(lease.lease_id) == name) return lease.lease_id;
    }
    return std::nullopt;
  }

  // Null: the row has no lease.
  const proto::Lease* lease_of(const Row& row) const {
    return row.about.lease ? model_.find_lease(*row.about.lease) : nullptr;
  }

  // For a row without a lease: the name in its line.
  std::string user_of(const Row& row) const {
    const proto::Lease* const lease = lease_of(row);
    return lease != nullptr ? lease->user : row.cells[kUserOf].text;
  }

  static Bytes memory_of(const proto::Lease& lease, const GpuUuid& gpu) {
    Bytes used;
    for (const proto::LeaseGpu& share : lease.gpus) {
      if (share.uuid == gpu) used += share.used_bytes.value_or(Bytes());
    }
    return used;
  }

  // Rows without a lease stay after those with one.
  void sort(std::vector<Row>& rows, const GpuUuid& gpu) const {
    const auto before = [&](const Row& a, const Row& b) {
      const proto::Lease* const one = lease_of(a);
      const proto::Lease* const other = lease_of(b);
      if (one == nullptr || other == nullptr) return one != nullptr && other == nullptr;
      if (choice_.sort == Sort::kUser && one->user != other->user) return one->user < other->user;
      if (choice_.sort == Sort::kTime && one->since != other->since)
        return one->since < other->since;
      const Bytes mine = memory_of(*one, gpu), theirs = memory_of(*other, gpu);
      if (choice_.sort == Sort::kMemory && mine != theirs) return mine > theirs;
      return one->lease_id < other->lease_id;
    };
    std::stable_sort(rows.begin(), rows.end(), before);
  }

  void add_with_processes(std::vector<Row>& rows, Row row, const GpuUuid& gpu) const {
    const Subject about = row.about;
    const bool is_room = !about.lease && row.cells[kLeaseOf].text.empty();
    const std::string user = user_of(row);
    rows.push_back(std::move(row));
    if (!choice_.processes || is_room) return;
    std::vector<const proto::Process*> there;
    for (const proto::Process& process : answers_.processes.processes) {
      const bool same_user = about.lease || process.user.value_or("unknown") == user;
      if (process.gpu_uuid == gpu && process.lease_id == about.lease && same_user) {
        there.push_back(&process);
      }
    }
    for (const proto::Process* const process : there) {
      rows.push_back(text_row("      " + process_text(*process, process == there.back())));
    }
  }

  const Model& model_;
  const Answers& answers_;
  const Choice& choice_;
};

std::string request_row_text(const proto::Request& request, WallTime now) {
  std::string text = fmt::format(
      "  {:>2}  {}  {}  {} GPU{}  {}", request.position, to_string(request.request_id),
      person_text(request.user, request.as_name), wish_text(request), request.gpus == 1 ? "" : "s",
      request.expected
          ? "expected " + clock_text(*request.expected, now) +
                (*request.expected > now ? " (in " + span_text(*request.expected - now) + ")"
                                         : std::string())
          : "expected ?");
  text += ": " + client::reason_text(request, now);
  if (const std::string place = place_text(request); !place.empty()) text += "; " + place;
  return text;
}

void add_requests(std::vector<Row>& rows, const Answers& answers, const Choice& choice) {
  const auto& requests = answers.queue.requests;
  std::vector<Row> found;
  for (const proto::Request& request : requests) {
    Row row = text_row(request_row_text(request, answers.when), Colour::kNone,
                       {{}, {}, request.request_id});
    if (is_of_user(request.user, choice) && passes(row.cells, choice.filter)) {
      found.push_back(std::move(row));
    }
  }
  if (found.empty()) return;
  rows.push_back(
      text_row(fmt::format("QUEUE: {} wait{}", requests.size(), requests.size() == 1 ? "s" : "")));
  rows.insert(rows.end(), found.begin(), found.end());
}

void add_bookings(std::vector<Row>& rows, const Answers& answers, const Choice& choice) {
  if (!answers.status.bookings || answers.status.bookings->empty()) return;
  const proto::Booking& first = answers.status.bookings->front();
  Row row = text_row(fmt::format("BOOKED: {}, the first by {} from {}: gpurota calendar",
                                 answers.status.bookings->size(), display_text(first.user, 32),
                                 local_time_text(first.begins, answers.when)));
  if (choice.user.empty() && passes(row.cells, choice.filter)) rows.push_back(std::move(row));
}

std::string filler_row_text(const proto::Filler& filler, WallTime now) {
  std::string text = fmt::format("  {} of {}: {}", display_text(filler.name, 40),
                                 display_text(filler.user, 32), display_text(filler.state, 20));
  if (filler.detail) text += ", " + *filler.detail;
  for (const proto::FillerPlace& place : filler.places) {
    text += fmt::format("; GPU {} {}", place.gpu, display_text(place.state, 20));
    const std::string why = client::reason_text(place, now);
    if (!why.empty()) text += " (" + why + ")";
  }
  return text;
}

void add_fillers(std::vector<Row>& rows, const Answers& answers, const Choice& choice) {
  bool first = true;
  for (const proto::Filler& filler : answers.fillers.fillers) {
    Row row = text_row(filler_row_text(filler, answers.when));
    if (!is_of_user(filler.user, choice) || !passes(row.cells, choice.filter)) continue;
    if (first) rows.push_back(text_row("FILLERS"));
    first = false;
    rows.push_back(std::move(row));
  }
}

// The current arrays: each in one line, with the progress of its items.
void add_arrays(std::vector<Row>& rows, const Answers& answers, const Choice& choice) {
  bool first = true;
  for (const proto::Job& job : answers.jobs.jobs) {
    const bool is_on = job.state == "running" || job.state == "waiting" || job.state == "stopping";
    if (!job.items || !is_on) continue;
    // The number of running items already shows that the array runs.
    const std::string detail = job.detail ? display_text(*job.detail, 200) : "";
    std::string how = job.state == "running" && !detail.empty() ? "" : display_text(job.state, 20);
    if (!how.empty() && !detail.empty()) how += ", ";
    Row row = text_row(fmt::format("  {} of {}: {}{}", display_text(job.name, 40),
                                   display_text(job.user, 32), how, detail));
    if (!is_of_user(job.user, choice) || !passes(row.cells, choice.filter)) continue;
    if (first) rows.push_back(text_row("ARRAYS"));
    first = false;
    rows.push_back(std::move(row));
  }
}

}  // namespace

const char* sort_name(Sort sort) {
  switch (sort) {
    case Sort::kLease:
      return "lease";
    case Sort::kUser:
      return "user";
    case Sort::kMemory:
      return "memory";
    case Sort::kTime:
      break;
  }
  return "time";
}

Rows make_rows(const Model& model, const Choice& choice) {
  Rows rows;
  if (!model.has_answers()) return rows;
  rows.machine = MachineRows(model, choice).make();
  add_requests(rows.queue, model.answers(), choice);
  add_bookings(rows.queue, model.answers(), choice);
  add_arrays(rows.queue, model.answers(), choice);
  add_fillers(rows.queue, model.answers(), choice);
  return rows;
}

}  // namespace gpurota::cli::topview
