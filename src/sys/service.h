// Notifies the service manager of the daemon's state. Does nothing without a service manager
// (NOTIFY_SOCKET).
#pragma once

namespace gpurota::sys {

// Whether systemd started this very process as a service, rather than one of its ancestors.
bool is_service();
void notify_ready();
void notify_stopping();

}  // namespace gpurota::sys
