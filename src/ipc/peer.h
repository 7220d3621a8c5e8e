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
  // The very process that connected, which lived when this was read. No pid: in a pid namespace
  // that we cannot see into; no start: hidden from us (hidepid).
  ports::ProcessId process;
  uid_t uid = 0;  // effective, when it connected; 65534 if not mapped in our namespace
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary

  bool in_group(gid_t group) const;
};

// kGone if the process has ended: nobody could tell any more which one it was.
Result<Peer> read_peer(int fd);

// Its user alone, quickly; peer.uid has the same.
Result<uid_t> read_peer_uid(int fd);

// The two ways to the pidfd, apart for the tests. kGone if the process has ended, kUnavailable if
// the kernel cannot tell.
Result<Fd> read_peer_pidfd(int fd);  // Linux 6.5 and newer: exact
// By pid, refused if that process started after this call began, or is not of the user who
// connected: then it is not the one that did. Only a later process of the same user can still be
// mistaken for it.
Result<Fd> open_peer_pidfd(pid_t pid, uid_t uid);
// Now, as /proc tells when a process started.
std::uint64_t ticks_since_boot();

}  // namespace gpurota::ipc
