// Leases as the store keeps them, and back. State thread only.
#pragma once

#include "daemon/leases/lease_tables.h"
#include "ports/store.h"

#include <string>

namespace gpurota::daemon {

ports::StoredLease row_of(const LeaseEntry& entry, const std::string& boot_id);
// Stores the lease, and notes in `tables` whether the store works.
Result<void> save_lease(const LeaseEntry& entry, const std::string& boot_id, ports::Store& store,
                        LeaseTables& tables);
// The lease without its processes.
Lease lease_of(const ports::StoredLease& stored);

}  // namespace gpurota::daemon
