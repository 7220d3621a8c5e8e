// Notifies the service manager of the daemon's state. Nothing happens where there is none
// (NOTIFY_SOCKET).
#pragma once

namespace gpurota::sys {

// Whether systemd has started this very process, as a service.
bool is_service();
void notify_ready();
void notify_stopping();

}  // namespace gpurota::sys
