// Notifies the service manager of the daemon's state. Does nothing without a service manager
// (NOTIFY_SOCKET).
#pragma once

namespace gpurota::sys {

// Whether systemd started this process itself as a service.
bool is_service();
void notify_ready();
void notify_stopping();

}  // namespace gpurota::sys
