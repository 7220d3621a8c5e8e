// The columns of `gpurota status`: all of them, their names, and those that a table shows by
// default. Pure.
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
  kHost,  // empty: only one machine
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
  // Shown only if named.
  kUuid,
  kFree,
  kKind,
  kEnds,
  kProcesses,
  kName,
  kNote,
  kStatusColumns
};

// The column in the default table, which has only those up to kWhat.
const Column& column_of(StatusColumn column);
// The column when chosen: its title is complete, and it is cut if the terminal is too narrow.
Column chosen_column(StatusColumn column);

// For `status --format`.
struct ChosenColumns {
  std::vector<StatusColumn> columns;  // not empty
  bool titles = true;
};

// The form of the status: a line for each machine, or some columns; else all columns for which
// there is room.
struct StatusForm {
  bool summary = false;
  std::optional<ChosenColumns> chosen;
  Whose whose;
};

// "gpu,user,memory": the columns in the order of the names, which may repeat. An error lists all
// names.
Result<std::vector<StatusColumn>> parse_status_columns(std::string_view names);
// "host, gpu, state, …": all names of columns.
std::string status_column_names();

}  // namespace gpurota::cli
