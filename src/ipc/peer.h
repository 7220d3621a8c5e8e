// Who is at the other end of a Unix socket, as the kernel knows it. Called by the daemon for every
// connection, and by clients that check who answers.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <vector>

#include <sys/types.h>

namespace gpurota::ipc {

struct Peer {
  pid_t pid = 0;  // 0: in a pid namespace that we cannot see into
  uid_t uid = 0;  // effective, when it connected; 65534 if not mapped in our namespace
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  // The very process that connected, even if its pid has been reused since. Empty where pid is 0 or
  // the process has ended.
  Fd pidfd;

  bool in_group(gid_t group) const;
};

Result<Peer> read_peer(int fd);

// The two ways to the pidfd, apart for the tests. kGone if the process has ended, kUnavailable if
// the kernel cannot tell.
Result<Fd> read_peer_pidfd(int fd);  // Linux 6.5 and newer: exact
// By pid, refused if that process started after this call began: then it is not the one that
// connected before.
Result<Fd> open_peer_pidfd(pid_t pid);

}  // namespace gpurota::ipc
