// The columns of `gpurota status`: which there are, what people call them, which of them a table
// shows that nobody chose. Pure.
#pragma once

#include "base/result.h"
#include "cli/args/whose.h"
#include "cli/text/table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

enum StatusColumn : std::size_t {
  kHost,  // empty, as there is one machine
  kGpu,
  kState,
  kUser,
  kLease,
  kUsed,
  kSize,
  kTurn,
  kFor,
  kLoad,
  kModel,
  kWhat,
  // Only where they are asked for by name.
  kUuid,
  kFree,
  kKind,
  kEnds,
  kProcesses,
  kName,
  kNote,
  kStatusColumns
};

// As `status` shows it by itself; only those up to kWhat are shown so.
const Column& column_of(StatusColumn column);
// As it is when chosen: with a title that stands alone, and cut where the terminal is too narrow.
Column chosen_column(StatusColumn column);

// Of `status --format`.
struct ChosenColumns {
  std::vector<StatusColumn> columns;  // not empty
  bool titles = true;
};

// The form of the status that is asked for: a line for each machine, or some columns; else all
// columns for which there is room.
struct StatusForm {
  bool summary = false;
  std::optional<ChosenColumns> chosen;
  Whose whose;
};

// "gpu,user,memory": the columns, as often and in the order in which they are named. An error lists
// the names.
Result<std::vector<StatusColumn>> parse_status_columns(std::string_view names);
// "host, gpu, state, …": all that can be named.
std::string status_column_names();

}  // namespace gpurota::cli
