// The numbers of leases, requests, jobs and fillers: none is given twice in the life of a store.
#pragma once

#include "base/result.h"
#include "store/database.h"

#include <cstdint>

namespace gpurota::store {

// The next number. The database has it when this returns.
Result<std::uint64_t> next_number(Database& database, const char* sequence);
// The last number that was given; 0: none.
Result<std::uint64_t> last_number(Database& database, const char* sequence);

}  // namespace gpurota::store
