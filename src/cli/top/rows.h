// The lines of `gpurota top`, before it is known how many of them there is room for: GPUs with
// their leases and processes, and below them the queue and fillers. Pure.
//
// The text about a lease is that of `gpurota status` (cli/status/status_rows.h).
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

// Which of it is shown, and in which order.
struct Choice {
  Sort sort = Sort::kLease;
  bool processes = false;
  std::string filter;  // only what has this text
  std::string user;    // only what is of this user
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
  // Safe for a terminal. Of a GPU: its state, and what else there is to say. Of a lease: as many as
  // it has columns. Else: the text.
  std::vector<Cell> cells{};
};

struct Rows {
  std::vector<Row> machine;  // GPUs with what is on them
  std::vector<Row> queue;    // requests, bookings and fillers that wait
};

Rows make_rows(const Model& model, const Choice& choice);

}  // namespace gpurota::cli::topview
