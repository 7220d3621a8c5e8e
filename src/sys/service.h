// Notifies the service manager of the daemon's state. Nothing happens where there is none
// (NOTIFY_SOCKET).
#pragma once

#include <string>

namespace gpurota::sys {

// Whether systemd has started this very process, as a service.
bool is_service();
void notify_ready();
void notify_stopping();
// One line for `systemctl status`.
void notify_status(const std::string& line);

}  // namespace gpurota::sys
