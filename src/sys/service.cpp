#include "sys/service.h"

#include "base/text.h"

#include <systemd/sd-daemon.h>

namespace gpurota::sys {

void notify_ready() { (void)::sd_notify(0, "READY=1"); }
void notify_stopping() { (void)::sd_notify(0, "STOPPING=1"); }
void notify_status(const std::string& line) {
  // A newline in it would begin another assignment.
  (void)::sd_notify(0, ("STATUS=" + display_text(line)).c_str());
}

}  // namespace gpurota::sys
