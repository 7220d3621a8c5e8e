// The tables, and their upgrade from older versions.
//
// PRAGMA user_version is the number of steps of kSteps that a database has seen. A released step is
// never changed; new steps are only appended. An upgrade is one transaction. A copy of the old
// database is kept beside the new one, for a gpurota that knows only the old tables.
#pragma once

#include "base/result.h"
#include "store/database.h"

#include <cstdint>
#include <string>

namespace gpurota::store {

// The path of the copy of the database with tables of this version.
std::string copy_path(const std::string& database, std::int64_t version);

// Makes or upgrades the tables. kInvalid if a newer gpurota wrote them. Before the tables change, a
// copy is on the disk; an error if there cannot be one. `steps`: at most this many steps, for
// tests.
Result<void> upgrade_schema(Database& database, std::size_t steps = SIZE_MAX);

}  // namespace gpurota::store
