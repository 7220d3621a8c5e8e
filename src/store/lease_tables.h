// Leases, with their GPUs, commands and arguments. Used by SqliteStore only.
#pragma once

#include "ports/store.h"
#include "store/database.h"

#include <vector>

namespace gpurota::store {

class LeaseTables {
 public:
  // `database` must outlive this object.
  explicit LeaseTables(Database& database) : database_(database) {}

  Result<std::vector<ports::StoredLease>> load();
  // Inserts or replaces; within a transaction of the caller's.
  Result<void> write(const ports::StoredLease& lease);
  Result<void> remove(LeaseId id);

 private:
  Result<void> load_parts(ports::StoredLease& lease);
  Result<void> load_commands(ports::StoredLease& lease);
  Result<void> write_parts(const ports::StoredLease& lease);
  Result<void> write_commands(const ports::StoredLease& lease);

  Database& database_;
};

}  // namespace gpurota::store
