#include "store/sequences.h"

#include "store/columns.h"

#include <fmt/core.h>

namespace gpurota::store {

Result<std::uint64_t> next_number(Database& database, const char* sequence) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto statement,
      database.prepare("UPDATE sequence SET last = last + 1 WHERE name = ? RETURNING last"));
  GPUROTA_ASSIGN_OR_RETURN(const bool row, statement.bind_text(sequence).step());
  if (!row) {
    return fail(Code::kInternal, fmt::format("{} has no {} sequence", database.path(), sequence));
  }
  const std::uint64_t next = from_integer(statement.integer(0));
  GPUROTA_TRY(statement.run());  // runs to the end, which commits
  return next;
}

Result<std::uint64_t> last_number(Database& database, const char* sequence) {
  GPUROTA_ASSIGN_OR_RETURN(auto row, database.prepare("SELECT last FROM sequence WHERE name = ?"));
  GPUROTA_ASSIGN_OR_RETURN(const bool there, row.bind_text(sequence).step());
  return there ? from_integer(row.integer(0)) : std::uint64_t{0};
}

}  // namespace gpurota::store
