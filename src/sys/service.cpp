#include "sys/service.h"

#include "base/text.h"

#include <systemd/sd-daemon.h>

#include <cstdlib>

#include <unistd.h>

namespace gpurota::sys {

bool is_service() {
  const char* const pid = std::getenv("SYSTEMD_EXEC_PID");
  return pid != nullptr && pid == std::to_string(::getpid());
}
void notify_ready() { (void)::sd_notify(0, "READY=1"); }
void notify_stopping() { (void)::sd_notify(0, "STOPPING=1"); }
void notify_status(const std::string& line) {
  // A newline in it would begin another assignment.
  (void)::sd_notify(0, ("STATUS=" + display_text(line)).c_str());
}

}  // namespace gpurota::sys
