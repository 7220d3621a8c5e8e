// Leases for programs that have none and ask by themselves: they preload libgpurota.so, by
// /etc/ld.so.preload or LD_PRELOAD, and the site has switched this on
// (docs/design/automatic-leases.md). State thread only.
//
// An automatic lease is of kind run. The lease is held by the process that asked, and by its
// descendants that ask or connect later. No process is moved into a cgroup, and none is signalled
// when the last holder has ended.
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
    std::string visible{};  // for CUDA_VISIBLE_DEVICES; empty: unchanged
    std::string why{};      // why there is no lease: for the program's user
    bool later = false;     // no answer yet: fillers leave, and the program asks again
    bool made = false;      // just now
    // No answer yet: the program's command line is being read. Ask again in kUnreadPeriod.
    bool unread = false;
    // No answer yet: the program has many ancestors. Ask again in its user's next turn.
    bool walks = false;
  };
  static constexpr Duration kUnreadPeriod = std::chrono::milliseconds(2);
  // A process that is in a lease already (by cgroup or ancestry) gets that lease as the answer,
  // whatever the policy. Refused if the lease is another user's, or the process has ended.
  Answer ask(const ipc::Peer& peer, const AutomaticWish& wish);
  // A program in a container says that it is in this lease, which has whole GPUs. Neither the
  // program's control group nor its ancestors show its lease. The container decides which GPUs the
  // program sees, and their numbers. The program's uid proves nothing: root in one container is
  // root in all. `lease` 0: the pod's lease with this token.
  Answer join(const ipc::Peer& peer, LeaseId lease, std::string_view token);

  // Describes the automatic leases, for doctor; empty while they are off.
  std::string describe() const;
  // Call at start and when the configuration has been read again. Tells programs whether to ask: a
  // file beside the tenant socket exists while automatic leases are on.
  Result<void> publish(const std::string& tenant_socket);

 private:
  Answer under(const LeaseEntry& entry, const ipc::Peer& peer) const;
  Answer make(const ipc::Peer& peer, const AutomaticWish& wish);
  Answer refuse(const ipc::Peer& peer, std::string why) const;
  // The owner of the new lease. For a process in a user namespace the owner is the user who made
  // the namespace, as all users in there belong to that user.
  uid_t owner_of(const ipc::Peer& peer) const;
  bool is_meant(const ipc::Peer& peer) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
