// The peer at the other end of a Unix socket, as the kernel knows it. Called by the daemon for
// every connection, and by clients that check who answers.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "ports/process_id.h"

#include <vector>

#include <sys/types.h>

namespace gpurota::ipc {

struct Peer {
  // The exact process that connected, alive when this was read. No pid: it is in a pid namespace
  // that we cannot see into. No start: hidden from us (hidepid).
  ports::ProcessId process;
  uid_t uid = 0;  // effective, when it connected; 65534 if not mapped in our namespace
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary

  bool in_group(gid_t group) const;
};

// kGone if the process has ended, as it can then no longer be identified.
Result<Peer> read_peer(int fd);

// Only the peer's user, quickly; the same as Peer::uid.
Result<uid_t> read_peer_uid(int fd);

// The two ways to the pidfd, separate for the tests. kGone if the process has ended, kUnavailable
// if the kernel cannot tell.
Result<Fd> read_peer_pidfd(int fd);  // Linux 6.5 and newer: exact
// By pid. Fails if the process with this pid started after this call began, or is not of the user
// who connected: such a process is not the one that connected. A process of the same user that got
// the pid before this call can still be mistaken for the peer.
Result<Fd> open_peer_pidfd(pid_t pid, uid_t uid);
// The present time, in the unit in which /proc tells when a process started.
std::uint64_t ticks_since_boot();

}  // namespace gpurota::ipc
