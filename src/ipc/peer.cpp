#include "ipc/peer.h"

#include "base/proc_stat.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

// Newer than Debian 12's headers.
constexpr int kSoPeerPidfd = 77;
constexpr int kSoPeerGroups = 59;

Result<std::vector<gid_t>> read_groups(int fd) {
  std::vector<gid_t> groups(32);
  for (;;) {
    socklen_t size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(fd, SOL_SOCKET, kSoPeerGroups, groups.data(), &size) == 0) {
      groups.resize(size / sizeof(gid_t));
      return groups;
    }
    if (errno != ERANGE || size <= groups.size() * sizeof(gid_t)) {
      return fail_errno("cannot read a peer's groups", errno);
    }
    groups.resize(size / sizeof(gid_t));
  }
}

Result<ucred> read_credentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail_errno("cannot read a peer's credentials", errno);
  }
  return credentials;
}

tl::unexpected<Error> peer_ended() {
  return fail(Code::kGone, "the process that connected has ended");
}

bool has_ended(const Fd& pidfd) {
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

}  // namespace

std::uint64_t ticks_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1000000000u;
}

bool Peer::in_group(gid_t group) const {
  return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<Fd> read_peer_pidfd(int fd) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(fd, SOL_SOCKET, kSoPeerPidfd, &pidfd, &size) == 0) return Fd(pidfd);
  if (errno == ESRCH || errno == EINVAL) return peer_ended();
  if (errno == ENOPROTOOPT)
    return fail(Code::kUnavailable, "the kernel has no SO_PEERPIDFD", errno);
  return fail_errno("cannot open a peer's pidfd", errno);
}

Result<Fd> open_peer_pidfd(pid_t pid, uid_t uid) {
  const std::uint64_t now = ticks_since_boot();
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    if (errno == ESRCH || errno == EINVAL || errno == ENOENT) return peer_ended();
    if (errno == ENOSYS) return fail(Code::kUnavailable, "the kernel has no pidfd_open", errno);
    return fail_errno(fmt::format("cannot open process {}", pid), errno);
  }
  const auto stat = read_proc_stat(pid);
  const auto uids = read_proc_uids(pid);
  if (stat && stat->start_ticks > now) return peer_ended();
  if (uids && uids->real != uid && uids->effective != uid) return peer_ended();
  return pidfd;
}

Result<uid_t> read_peer_uid(int fd) {
  GPUROTA_ASSIGN_OR_RETURN(const ucred credentials, read_credentials(fd));
  return credentials.uid;
}

Result<Peer> read_peer(int fd) {
  GPUROTA_ASSIGN_OR_RETURN(const ucred credentials, read_credentials(fd));
  Peer peer;
  peer.process.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  GPUROTA_ASSIGN_OR_RETURN(peer.groups, read_groups(fd));
  if (peer.process.pid == 0) return peer;
  Result<Fd> pidfd = read_peer_pidfd(fd);
  if (!pidfd && pidfd.error().code == Code::kUnavailable) {
    pidfd = open_peer_pidfd(credentials.pid, credentials.uid);
  }
  if (!pidfd) return tl::unexpected<Error>(std::move(pidfd).error());
  const auto stat = read_proc_stat(credentials.pid);
  // A process that is still alive has kept its pid, so `stat` is its own.
  if (has_ended(*pidfd)) return peer_ended();
  if (stat) peer.process.start_ticks = stat->start_ticks;
  return peer;
}

}  // namespace gpurota::ipc
