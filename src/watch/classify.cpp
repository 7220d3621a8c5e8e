#include "watch/classify.h"

#include <algorithm>
#include <array>

namespace gpurota::watch {

bool is_ignored(const SeenProcess& process, const Policy& policy) {
  if (process.graphics) return true;
  return std::any_of(policy.ignored.begin(), policy.ignored.end(), [&](const Ignored& each) {
    const bool user = !each.uid || each.uid == process.uid;
    const bool file = each.executable.empty() || each.executable == process.executable;
    return user && file && (each.uid || !each.executable.empty());
  });
}

const SeenLease* owning_lease(const SeenProcess& process, const Reading& reading) {
  for (const SeenLease& lease : reading.leases) {
    if (process.lease == lease.id) return &lease;
  }
  if (process.lease) return nullptr;
  for (const SeenLease& lease : reading.leases) {
    if (lease.takes_all_of_user && process.uid == lease.uid) return &lease;
  }
  return nullptr;
}

const SeenLease* covering_lease(const SeenProcess& process, const Reading& reading) {
  if (const SeenLease* owner = owning_lease(process, reading)) return owner;
  for (const SeenLease& lease : reading.leases) {
    if (!lease.limit && !lease.filler && process.uid == lease.uid) return &lease;
  }
  return nullptr;
}

bool is_not_limited(const SeenProcess& process, const SeenLease& lease, const Reading& reading) {
  // If the driver gives no figure for a listed process, the process has a context.
  const bool uses = !process.graphics && process.used != Bytes();
  return uses && process.library == Library::kSilent && process.start_ticks != 0 && lease.limit &&
         owning_lease(process, reading) == &lease;
}

bool talks_to_container_engine(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 5> kClients = {"docker", "docker-compose", "podman",
                                                        "nerdctl", "kubectl"};
  if (command.empty()) return false;
  std::string_view name = command.front();
  name.remove_prefix(name.rfind('/') + 1);
  return std::find(kClients.begin(), kClients.end(), name) != kClients.end();
}

}  // namespace gpurota::watch
