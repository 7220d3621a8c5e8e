#include "sys/service.h"

#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <string>

#include <unistd.h>

namespace gpurota::sys {

bool is_service() {
  const char* const pid = std::getenv("SYSTEMD_EXEC_PID");
  return pid != nullptr && pid == std::to_string(::getpid());
}
void notify_ready() { (void)::sd_notify(0, "READY=1"); }
void notify_stopping() { (void)::sd_notify(0, "STOPPING=1"); }

}  // namespace gpurota::sys
