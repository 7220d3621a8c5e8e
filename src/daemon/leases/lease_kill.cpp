#include "daemon/leases/lease_kill.h"

#include <csignal>

namespace gpurota::daemon {

void ask_to_end(LeaseEntry& entry) {
  entry.asked = true;
  if (entry.cause == EndCause::kFinished) entry.left_behind = entry.members.count_left();
  entry.members.ask_to_end();
}

void kill_leftovers(LeaseProcesses& members, const TrackedProcess* main, Duration late) {
  if (late >= kEngineTakes || !members.kill_all_but_engine()) return members.kill();
  // Ignore an error: the process may have just ended.
  if (late >= kEngineSees && main && main->alive()) (void)main->handle->send_signal(SIGKILL);
}

int warn_programs(LeaseEntry& entry, int signal) {
  int warned = entry.members.warn(signal) + entry.covered.warn(signal);
  for (auto& [pid, command] : entry.commands) warned += command.members.warn(signal);
  return warned;
}

}  // namespace gpurota::daemon
