// All lines of `gpurota top`, whether or not the screen has room for them: GPUs with their leases
// and processes, and below them the queue, arrays and fillers. Pure.
//
// The text about a lease is the same as in `gpurota status` (cli/status/status_rows.h).
#pragma once

#include "cli/text/table.h"
#include "cli/top/model.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli::topview {

enum class Sort { kLease, kUser, kMemory, kTime };
// "lease", "user", …
const char* sort_name(Sort sort);

// Which lines are shown, and in which order.
struct Choice {
  Sort sort = Sort::kLease;
  bool processes = false;
  std::string filter;  // only lines with this text
  std::string user;    // only lines of this user
};

// The subject of a line. A line without one cannot be chosen.
struct Subject {
  std::optional<GpuUuid> gpu;
  std::optional<LeaseId> lease;
  std::optional<RequestId> request;

  bool is_something() const { return gpu || lease || request; }
  bool operator==(const Subject&) const = default;
};

enum class RowKind { kGpu, kLease, kText };
enum LeaseColumn : std::size_t {
  kLeaseOf,
  kUserOf,
  kStateOf,
  kMemoryOf,
  kSizeOf,
  kTurnOf,
  kTimeOf,
  kWhatOf,
  kLeaseColumns
};

struct Row {
  RowKind kind = RowKind::kText;
  Subject about{};
  // Safe for a terminal. For a GPU: its state, and remarks. For a lease: one cell per column.
  // Otherwise: the text.
  std::vector<Cell> cells{};
};

struct Rows {
  std::vector<Row> machine;  // GPUs, with what runs on them
  std::vector<Row> queue;    // waiting requests, bookings, arrays of jobs and fillers
};

Rows make_rows(const Model& model, const Choice& choice);

}  // namespace gpurota::cli::topview
