// Requests as the store keeps them, and back. Pure.
#pragma once

#include "daemon/leases/lease_tables.h"
#include "ports/store.h"

#include <string>

namespace gpurota::daemon {

ports::StoredRequest row_of(const QueueEntry& entry, const std::string& boot_id);
// Only the request itself, without a process that waits for it.
ports::StoredRequest row_of(RequestId id, const AcquireRequest& asked);
AcquireRequest asked_of(const ports::StoredRequest& stored);

}  // namespace gpurota::daemon
