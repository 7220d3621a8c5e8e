#include "daemon/leases/automatic_leases.h"

#include "abi/env.h"
#include "base/fd.h"
#include "base/log.h"
#include "daemon/gpus/visible_devices.h"
#include "daemon/leases/container_folder.h"
#include "daemon/leases/lease_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::daemon {

using WhenFull = config::Automatic::WhenFull;

namespace {

// Whether a file beside that socket says to programs that they are to ask.
Result<void> mark(const std::string& socket, bool given) {
  const std::string marker = socket.substr(0, socket.rfind('/') + 1) + GPUROTA_AUTOMATIC_MARKER;
  if (!given) {
    if (::unlink(marker.c_str()) == 0 || errno == ENOENT) return {};
    return fail_errno("cannot remove " + marker, errno);
  }
  const Fd made(::open(marker.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!made) return fail_errno("cannot make " + marker, errno);
  return {};
}

}  // namespace

AutomaticLeases::Answer AutomaticLeases::ask(const ipc::Peer& peer) {
  const auto known = parts_.attribution.owner_of(peer.process.pid).lease;
  // What was found by its number is of another process if it has ended meanwhile; that asks nothing any more.
  if (!ports::is_still(parts_.processes, peer.process)) return {GPUROTA_REFUSED_LEASE, {}, {}, {}};
  if (const LeaseEntry* entry = known ? parts_.leases.find(*known) : nullptr) {
    return under(*entry, peer);
  }
  if (!parts_.config.automatic.enabled || !is_meant(peer)) return {};
  return make(peer);
}

AutomaticLeases::Answer AutomaticLeases::join(const ipc::Peer& peer, LeaseId lease,
                                              std::string_view token) {
  const LeaseEntry* const entry =
      lease.value == 0 ? find_pod_lease(parts_.leases, token) : parts_.leases.find(lease);
  if (!entry || entry->cause || !entry->lease.exclusive() || !has_token(*entry, token)) {
    return {GPUROTA_REFUSED_LEASE, {}, {}, {}};
  }
  if (!parts_.leases.add_process(entry->lease.id, peer.process))
    return {GPUROTA_REFUSED_BUSY, {}, {}, {}};
  return {};
}

// The token makes whoever has it a process of the lease: it is for its owner, and root.
AutomaticLeases::Answer AutomaticLeases::under(const LeaseEntry& entry,
                                               const ipc::Peer& peer) const {
  const bool own = peer.uid == entry.lease.uid || peer.uid == 0;
  if (entry.cause || !own) return {GPUROTA_REFUSED_LEASE, {}, {}, {}};
  const std::string visible = visible_devices(entry.lease, parts_.gpus);
  // Whole GPUs have no limit to hold.
  if (entry.lease.exclusive()) return {GPUROTA_UNMANAGED, {}, {}, visible};
  return {GPUROTA_OK, entry.lease.id, entry.token, visible};
}

AutomaticLeases::Answer AutomaticLeases::make(const ipc::Peer& peer) {
  const config::Automatic& policy = parts_.config.automatic;
  AcquireRequest request;
  request.uid = peer.uid;
  request.process = peer.process;
  request.automatic = true;
  request.placement.count = policy.gpus;
  request.placement.memory = policy.memory;
  request.placement.soft_limit = policy.soft_limit;
  auto command = parts_.processes.command_of(peer.process.pid);
  if (!command && command.error().code == Code::kUnavailable) {
    Answer answer;
    answer.unread = true;
    return answer;
  }
  if (command) request.command = std::move(*command);
  const auto made = parts_.queue.acquire(request);
  if (made) {
    Answer answer = under(**made, peer);
    answer.made = true;
    return answer;
  }
  // Fillers may be all that is in its way.
  if (parts_.queue.make_way(request)) {
    Answer answer;
    answer.later = true;
    return answer;
  }
  const bool goes_on = policy.when_full == WhenFull::kUnmanaged;
  log::warn(goes_on ? "no lease for a program that asked, it continues without one"
                    : "no lease for a program that asked, it gets no GPU",
            {{"pid", peer.process.pid}, {"uid", peer.uid}, {"reason", made.error().error.message}});
  Answer answer;
  if (!goes_on) answer.status = GPUROTA_REFUSED_LIMIT;
  return answer;
}

bool AutomaticLeases::is_meant(const ipc::Peer& peer) const {
  const auto& users = parts_.config.automatic.users;
  const std::set<gid_t>& groups = parts_.users.automatic_groups();
  const std::string uid = std::to_string(peer.uid), name = parts_.processes.user_name(peer.uid);
  return users.empty() ||
         std::any_of(users.begin(), users.end(),
                     [&](const std::string& user) { return user == name || user == uid; }) ||
         std::any_of(groups.begin(), groups.end(),
                     [&](gid_t group) { return peer.gid == group || peer.in_group(group); });
}

std::string AutomaticLeases::describe() const {
  const config::Automatic& policy = parts_.config.automatic;
  if (!policy.enabled) return {};
  const std::string size = policy.memory.percent != 0 ? fmt::format("{}%", policy.memory.percent)
                                                      : to_string(policy.memory.bytes);
  return fmt::format("{} of {} GPU{} for each program that has no lease, {}", size, policy.gpus,
                     policy.gpus == 1 ? "" : "s",
                     policy.users.empty() ? "of everybody" : "of the users named");
}

Result<void> AutomaticLeases::publish(const std::string& tenant_socket) {
  const bool given = parts_.config.automatic.enabled;
  // A container may have its folder only, which is not there if it could not be made.
  if (const auto inside = mark(container_socket(tenant_socket), given); !inside && given) {
    log::warn("containers are not told of automatic leases", {{"error", inside.error().message}});
  }
  return mark(tenant_socket, given);
}

}  // namespace gpurota::daemon
