#include "cli/status/status_columns.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/args/option_parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

// No terminal shows more columns, and nobody reads them.
constexpr std::size_t kMostColumns = 64;

struct NamedColumn {
  const char* name;
  Column shown;
  const char* alone = nullptr;  // its title when chosen, if different
};

const NamedColumn& named(std::size_t column) {
  static const NamedColumn kColumns[kStatusColumns] = {
      {"host", {.title = "HOST"}},
      {"gpu", {.title = "GPU", .right = true}},
      {"state", {.title = "STATE", .gap = 1}},
      {"user", {.title = "USER", .least = 4}},  // names are never cut; the rest of the cell may be
      {"lease", {.title = "LEASE"}},
      {"memory", {.title = "MEMORY", .right = true}},
      {"size", {.title = "GiB", .gap = 1}, "SIZE"},
      {"turn", {.title = "TURN"}},
      {"for", {.title = "FOR", .right = true}},
      {"load", {.title = "LOAD", .right = true}},
      {"model", {.title = "MODEL", .least = 5}},
      {"what", {.title = "WHAT", .least = 4}},
      {"uuid", {.title = "UUID"}},
      {"free", {.title = "FREE", .right = true}},
      {"kind", {.title = "KIND"}},
      {"ends", {.title = "ENDS", .right = true}},
      {"processes", {.title = "PROCESSES", .right = true}},
      {"name", {.title = "NAME"}},
      {"note", {.title = "NOTE", .least = 4}},
  };
  return kColumns[column];
}

tl::unexpected<Error> unknown_column(std::string_view name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kStatusColumns; ++i) names.emplace_back(named(i).name);
  const std::string near = nearest_name(name, names);
  return fail(
      Code::kInvalid,
      fmt::format("--format: there is no column '{}'{}; give some of {}", display_text(name, 40),
                  near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                  status_column_names()));
}

}  // namespace

const Column& column_of(StatusColumn column) { return named(column).shown; }

Column chosen_column(StatusColumn column) {
  Column chosen = named(column).shown;
  if (named(column).alone != nullptr) {
    chosen.title = named(column).alone;
    chosen.right = true;
  }
  chosen.gap = 2;
  chosen.least = std::max<std::size_t>(1, chosen.least);
  return chosen;
}

Result<std::vector<StatusColumn>> parse_status_columns(std::string_view names) {
  std::vector<StatusColumn> columns;
  for (const std::string& name : split_commas({std::string(names)})) {
    std::size_t column = 0;
    while (column < kStatusColumns && name != named(column).name) ++column;
    if (column == kStatusColumns) return unknown_column(name);
    columns.push_back(static_cast<StatusColumn>(column));
  }
  if (columns.size() <= kMostColumns) return columns;
  return fail(Code::kInvalid, fmt::format("--format: {} columns are too many (at most {})",
                                          columns.size(), kMostColumns));
}

std::string status_column_names() {
  std::string names;
  for (std::size_t i = 0; i < kStatusColumns; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", named(i).name);
  }
  return names;
}

}  // namespace gpurota::cli
