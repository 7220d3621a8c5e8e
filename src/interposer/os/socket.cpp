#include "interposer/os/socket.h"

#include "interposer/os/config.h"

#include <cstring>

#include <sys/eventfd.h>
#include <sys/un.h>

namespace gpurota::interposer {
namespace {

// The lowest number that a socket of ours may have: above the numbers that shells and
// select()-based programs use, and below the usual limit of 1024.
constexpr long kLowestDescriptor = 700;
// The lowest second number of a HeldSocket: well above kLowestDescriptor, where our sockets have
// their first numbers, and still in the same descriptor table of 1024 entries.
constexpr long kLowestHeld = 960;

struct Remembered {
  std::atomic<int32_t> owner{0};
  std::atomic<int> fd{-1};
  std::atomic<uint64_t> inode{0};
};
Remembered g_remembered[kSocketRoles];

uint64_t inode_of(int fd) {
  struct stat info;
  if (sys_fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return 0;
  return info.st_ino;
}

void take_descriptors(msghdr* message, Descriptors* fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds->add(fd);
    }
  }
}

long send_once(int fd, const void* data, size_t size, const Descriptors* fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(Descriptors::kMost * sizeof(int))] = {};
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (const uint32_t count = fds != nullptr ? fds->count() : 0; count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (uint32_t i = 0; i < count; ++i) {
      const int one = (*fds)[i];
      memcpy(CMSG_DATA(c) + i * sizeof(int), &one, sizeof(int));
    }
  }
  return sys_sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

bool is_ours(int fd, uint64_t inode) { return inode != 0 && inode_of(fd) == inode; }

void widen_descriptor_table() {
  ErrnoGuard guard;
  // Uses a file of our own: closing a duplicate of a descriptor of the program's would drop the
  // program's locks on that file.
  const int fd = static_cast<int>(::syscall(SYS_eventfd2, 0, EFD_CLOEXEC));
  if (fd < 0) return;
  const int high = sys_fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high >= 0) sys_close(high);
  sys_close(fd);
}

bool adopt_socket(int fd, Socket* out) {
  const int high = sys_fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high >= 0) {
    sys_close(fd);
    fd = high;
  }
  *out = {fd, inode_of(fd), true};
  if (out->inode != 0) return true;
  sys_close(fd);
  out->open = false;
  return false;
}

void close_if_ours(int fd, uint64_t inode) {
  if (is_ours(fd, inode)) sys_close(fd);
}

void close_socket(Socket* socket) {
  if (socket->open) close_if_ours(socket->fd, socket->inode);
  socket->open = false;
}

void shut_down(int fd, uint64_t inode) {
  const HeldSocket held({fd, inode, true});
  if (held.fd() >= 0) ::syscall(SYS_shutdown, held.fd(), SHUT_RDWR);
}

HeldSocket::HeldSocket(const Socket& socket) : inode_(socket.inode) {
  if (!is_ours(socket)) return;
  fd_ = sys_fcntl(socket.fd, F_DUPFD_CLOEXEC, kLowestHeld);
  second_ = fd_ >= 0;
  // If there is no room for a second number (RLIMIT_NOFILE), use the first.
  if (!second_ && errno != EBADF) fd_ = socket.fd;
  if (fd_ < 0 || is_ours(fd_, inode_)) return;
  // Another file took the number just now. If it is a socket, the second number is closed. Any
  // other file keeps it, because closing it would drop the program's locks on that file.
  if (second_ && inode_of(fd_) != 0) sys_close(fd_);
  fd_ = -1;
}

bool HeldSocket::release() {
  const bool ours = fd_ >= 0 && is_ours(fd_, inode_);
  if (ours && second_) sys_close(fd_);
  fd_ = -1;
  return ours;
}

int connect_to(const char (&path)[108]) {
  if (path[0] == '\0') return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof(address.sun_path) == sizeof(Config::socket_path), "as the kernel has it");
  memcpy(address.sun_path, path, sizeof(address.sun_path));
  const int fd = static_cast<int>(
      ::syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) return -1;
  if (::syscall(SYS_connect, fd, &address, sizeof(address)) == 0) return fd;
  sys_close(fd);
  return -1;
}

int Descriptors::take(uint32_t i) {
  const int fd = i < count_ ? fds_[i] : -1;
  if (i < count_) fds_[i] = -1;
  return fd;
}

void Descriptors::add(int fd) {
  if (count_ < kMost) {
    fds_[count_++] = fd;
  } else {
    sys_close(fd);
  }
}

void Descriptors::close() {
  while (count_ > 0) {
    if (fds_[--count_] >= 0) sys_close(fds_[count_]);
  }
}

// Receives without waiting. kBroken: errno has the reason, or 0 if the socket is no longer ours.
static long receive_once(const Socket& socket, msghdr* message) {
  HeldSocket held(socket);
  errno = 0;
  if (held.fd() < 0) return kBroken;
  const long n = sys_recvmsg(held.fd(), message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const int error = errno;
  const bool ours = held.release();
  errno = ours ? error : 0;
  return ours ? n : kBroken;
}

// Checks the socket's inode each time: while poll waits, the program may close the socket and reuse
// the number.
long receive_packet(const Socket& socket, void* buffer, size_t room, Descriptors* fds,
                    int64_t deadline_ms) {
  alignas(cmsghdr) char control[CMSG_SPACE(Descriptors::kMost * sizeof(int))];
  fds->close();
  for (;;) {
    iovec part{buffer, room};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const long n = receive_once(socket, &message);
    if (n >= 0) {
      take_descriptors(&message, fds);
      // Having no room for the descriptors must not end the connection.
      if ((message.msg_flags & MSG_CTRUNC) != 0) fds->close();
      if ((message.msg_flags & MSG_TRUNC) == 0) return n;
      fds->close();
      return kBroken;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return kBroken;
    if (!wait_fd(socket.fd, POLLIN, deadline_ms)) return kDeadline;
  }
}

bool send_packet(const Socket& socket, const void* data, size_t size, int64_t deadline_ms,
                 const Descriptors* fds) {
  for (;;) {
    HeldSocket held(socket);
    if (held.fd() < 0) return false;
    const long n = send_once(held.fd(), data, size, fds);
    const int error = errno;
    if (!held.release()) return false;
    errno = error;
    if (n >= 0) return static_cast<size_t>(n) == size;
    if (errno == EINTR) continue;
    if (errno == ETOOMANYREFS && now_ms() < deadline_ms) {  // too many descriptors in transit
      sleep_ms(1);
      continue;
    }
    if (errno != EAGAIN || !wait_fd(socket.fd, POLLOUT, deadline_ms)) return false;
  }
}

void remember_socket(SocketRole role, const Socket& socket) {
  Remembered& r = g_remembered[role];
  r.fd.store(socket.fd);
  r.inode.store(socket.inode);
  r.owner.store(sys_getpid());
}

void close_inherited() {
  for (Remembered& r : g_remembered) {
    const int32_t owner = r.owner.load();
    if (owner == 0 || owner == sys_getpid()) continue;
    close_if_ours(r.fd.load(), r.inode.load());
    r.owner.store(0);
  }
}

}  // namespace gpurota::interposer
