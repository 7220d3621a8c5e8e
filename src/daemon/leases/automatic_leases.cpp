#include "daemon/leases/automatic_leases.h"

#include "abi/env.h"
#include "base/fd.h"
#include "base/log.h"
#include "daemon/leases/container_folder.h"
#include "daemon/leases/lease_containers.h"
#include "daemon/leases/lease_environment.h"
#include "daemon/leases/lease_members.h"
#include "watch/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::daemon {

using WhenFull = config::Automatic::WhenFull;

namespace {

// How many ancestors of the process that asks are read at a time.
constexpr std::size_t kReadsAtOnce = 32;

// Makes or removes the file beside `socket` that tells programs to ask for a lease.
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

AutomaticLeases::Answer AutomaticLeases::ask(const ipc::Peer& peer, const AutomaticWish& wish) {
  std::size_t reads_left = kReadsAtOnce;
  if (!parts_.attribution.walk_ahead(peer.process.pid, reads_left)) return {.walks = true};
  const auto known = parts_.attribution.owner_of(peer.process.pid).lease;
  // If the process has ended meanwhile, the lease that was found by its pid may be another
  // process's, and nobody waits for the answer any more.
  if (!ports::is_still(parts_.processes, peer.process)) return {.status = GPUROTA_REFUSED_LEASE};
  if (const LeaseEntry* entry = known ? parts_.tables.find(*known) : nullptr) {
    return under(*entry, peer);
  }
  if (!parts_.config.automatic.enabled || !is_meant(peer)) {
    if (!wish.container) return {};
    return refuse(peer, parts_.config.automatic.enabled
                            ? "this machine gives leases to containers of some users only "
                              "(automatic.users)"
                            : "this machine gives no leases to containers that have none "
                              "(automatic.enabled)");
  }
  return make(peer, wish);
}

AutomaticLeases::Answer AutomaticLeases::join(const ipc::Peer& peer, LeaseId lease,
                                              std::string_view token) {
  const LeaseEntry* const entry = find_told_lease(parts_.tables, lease, token);
  if (!entry || entry->cause || !entry->lease.exclusive() || !has_token(*entry, token)) {
    return {.status = GPUROTA_REFUSED_LEASE};
  }
  if (!parts_.leases.add_process(entry->lease.id, peer.process))
    return {.status = GPUROTA_REFUSED_BUSY};
  return {};
}

// A process that has the token counts as a process of the lease, so the token is for the lease's
// owner and root only.
AutomaticLeases::Answer AutomaticLeases::under(const LeaseEntry& entry,
                                               const ipc::Peer& peer) const {
  const bool own =
      peer.uid == entry.lease.uid || peer.uid == 0 || owner_of(peer) == entry.lease.uid;
  if (entry.cause || !own) return {.status = GPUROTA_REFUSED_LEASE};
  const std::string visible = visible_devices(entry.lease, parts_.gpus);
  // Whole GPUs have no limit to enforce.
  if (entry.lease.exclusive()) return {.visible = visible};
  // Keeps the lease alive if its last process ends before this process sends HELLO.
  if (entry.automatic && !parts_.leases.add_process(entry.lease.id, peer.process)) {
    return {.status = GPUROTA_REFUSED_BUSY};
  }
  return {.status = GPUROTA_OK, .lease = entry.lease.id, .token = entry.token, .visible = visible};
}

AutomaticLeases::Answer AutomaticLeases::make(const ipc::Peer& peer, const AutomaticWish& wish) {
  const config::Automatic& policy = parts_.config.automatic;
  AcquireRequest request;
  request.uid = owner_of(peer);
  request.process = peer.process;
  request.automatic = true;
  if (const auto taken = take_wish(wish, policy, parts_.gpus.infos(), request); !taken) {
    return refuse(peer, taken.error().message);
  }
  auto command = parts_.processes.command_of(peer.process.pid);
  if (!command && command.error().code == Code::kUnavailable) return {.unread = true};
  if (command) request.command = std::move(*command);
  const auto container = watch::find_container(parts_.processes.cgroups().of(peer.process.pid));
  if (wish.container && container && container->is_unique()) {
    request.container = ports::StoredContainer{peer.uid, container->group};
  }
  const auto made = parts_.queue.acquire(request);
  if (made) {
    Answer answer = under(**made, peer);
    answer.made = true;
    return answer;
  }
  // Perhaps only fillers are in the way of the request.
  if (parts_.queue.make_way(request)) return {.later = true};
  const std::string& why = made.error().error.message;
  if (policy.when_full == WhenFull::kRefuse) return refuse(peer, why);
  log::warn("no lease for a program that asked, it continues without one",
            {{"pid", peer.process.pid}, {"uid", peer.uid}, {"reason", why}});
  return {};
}

AutomaticLeases::Answer AutomaticLeases::refuse(const ipc::Peer& peer, std::string why) const {
  log::warn("no lease for a program that asked, it gets no GPU",
            {{"pid", peer.process.pid}, {"uid", peer.uid}, {"reason", why}});
  if (!parts_.config.program_notices) why.clear();
  return {.status = GPUROTA_REFUSED_LIMIT, .why = std::move(why)};
}

// Everybody who may command an engine that runs as root can be any user in its containers. So the
// uid of a process in such a container does not identify the owner.
uid_t AutomaticLeases::owner_of(const ipc::Peer& peer) const {
  const auto maker = parts_.processes.namespace_maker(peer.process.pid);
  if (maker && *maker != 0) return *maker;
  const auto& owner = parts_.users.container_owner();
  if (!owner) return peer.uid;
  return find_roots_container(parts_.processes, peer.process.pid) ? *owner : peer.uid;
}

bool AutomaticLeases::is_meant(const ipc::Peer& peer) const {
  const auto& users = parts_.config.automatic.users;
  const std::set<gid_t>& groups = parts_.users.automatic_groups();
  const uid_t owner = owner_of(peer);
  const std::string uid = std::to_string(owner), name = parts_.processes.user_name(owner);
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
  // A container may see only container_folder(), which does not exist if the daemon could not make
  // it.
  if (const auto inside = mark(container_socket(tenant_socket), given); !inside && given) {
    log::warn("containers are not told of automatic leases", {{"error", inside.error().message}});
  }
  return mark(tenant_socket, given);
}

}  // namespace gpurota::daemon
