// The tables, and how those of older versions become those of this one.
//
// PRAGMA user_version is the number of steps of kSteps that a database has seen. A released step is
// never changed; new ones are only appended. An upgrade is one transaction, and what was there is
// kept beside it, for a gpurota that knows no more than that.
#pragma once

#include "base/result.h"
#include "store/database.h"

#include <cstdint>
#include <string>

namespace gpurota::store {

// Where the database is kept as it was with tables of this version.
std::string copy_path(const std::string& database, std::int64_t version);

// Makes or upgrades the tables. kInvalid if a newer gpurota wrote them. Before they change a copy
// is on the disk; an error if it cannot be. `steps`: only so many of them, for tests.
Result<void> upgrade_schema(Database& database, std::size_t steps = SIZE_MAX);

}  // namespace gpurota::store
