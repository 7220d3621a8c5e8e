// Leases for programs that have none and ask by themselves: they preload libgpurota.so, by
// /etc/ld.so.preload or LD_PRELOAD, and the site has switched this on
// (docs/design/automatic-leases.md). State thread only.
//
// Such a lease is of kind run and held by the processes that use it: the one that asked, and those
// below it that ask or connect later. Nothing is moved into a cgroup, nothing is signalled when the
// last has ended.
#pragma once

#include "abi/wire.h"
#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/automatic_wish.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/queue.h"
#include "daemon/users/users.h"
#include "ipc/peer.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::daemon {

class AutomaticLeases {
 public:
  struct Parts {
    Queue& queue;
    const LeaseTables& tables;
    LeaseManager& leases;
    Attribution& attribution;
    ports::Processes& processes;
    const GpuTable& gpus;
    const config::Config& config;
    const Users& users;
  };

  explicit AutomaticLeases(Parts parts) : parts_(std::move(parts)) {}

  struct Answer {
    std::uint32_t status = GPUROTA_UNMANAGED;
    LeaseId lease{};
    std::string token{};
    std::string visible{};  // for CUDA_VISIBLE_DEVICES; empty: as it is
    std::string why{};      // there is none: for the program's user
    bool later = false;     // no answer yet: fillers make way, and the program asks again
    bool made = false;      // just now
    bool unread = false;    // no answer yet: its command line is being read. Ask in kUnreadPeriod
    bool walks =
        false;  // no answer yet: it is deep in a tree of processes. Ask in the next turn of its user
  };
  static constexpr Duration kUnreadPeriod = std::chrono::milliseconds(2);
  // A process that is in a lease already (by cgroup or ancestry) is told that lease, whatever the
  // policy; refused if the lease is another user's, or the process has ended.
  Answer ask(const ipc::Peer& peer, const AutomaticWish& wish);
  // A program of a container says that it is in this lease on whole GPUs: neither its control group
  // nor its ancestors do. Which GPUs it sees, and as which numbers, is the container's. Its uid
  // says nothing: root in one container is root in all. 0: the pod's lease of this token.
  Answer join(const ipc::Peer& peer, LeaseId lease, std::string_view token);

  // Describes the automatic leases, for doctor; empty while this is off.
  std::string describe() const;
  // At start and when the configuration has been read again: says to programs whether to ask, by a
  // file beside the tenant socket that is there while this is on.
  Result<void> publish(const std::string& tenant_socket);

 private:
  Answer under(const LeaseEntry& entry, const ipc::Peer& peer) const;
  Answer make(const ipc::Peer& peer, const AutomaticWish& wish);
  Answer refuse(const ipc::Peer& peer, std::string why) const;
  // The owner of the new lease. For a process in a user namespace it is the user who made the
  // namespace, as all users in there are theirs.
  uid_t owner_of(const ipc::Peer& peer) const;
  bool is_meant(const ipc::Peer& peer) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
