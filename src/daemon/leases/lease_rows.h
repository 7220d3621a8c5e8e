// Leases as the store keeps them, and back. Pure.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "ports/store.h"

#include <string>

namespace gpurota::daemon {

ports::StoredLease row_of(const LeaseEntry& entry, const std::string& boot_id);
// Without its processes.
Lease lease_of(const ports::StoredLease& stored);

}  // namespace gpurota::daemon
