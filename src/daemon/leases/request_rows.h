// Requests as the store keeps them, and back. Pure.
#pragma once

#include "daemon/leases/queue.h"
#include "ports/store.h"

#include <string>

namespace gpurota::daemon {

ports::StoredRequest row_of(const QueueEntry& entry, const std::string& boot_id);
AcquireRequest asked_of(const ports::StoredRequest& stored);

}  // namespace gpurota::daemon
