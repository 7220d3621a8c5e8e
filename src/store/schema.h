// The tables, and how those of older versions become those of this one.
//
// PRAGMA user_version is the number of steps of kSteps that a database has seen. A released step is
// never changed; new ones are only appended.
#pragma once

#include "base/result.h"
#include "store/database.h"

namespace gpurota::store {

// Makes or upgrades the tables. kInvalid if a newer gpurota wrote them.
Result<void> upgrade_schema(Database& database);

}  // namespace gpurota::store
