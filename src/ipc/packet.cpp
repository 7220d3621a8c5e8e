#include "ipc/packet.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace gpurota::ipc {
namespace {

// The kernel's SCM_MAX_FD: no packet carries more.
constexpr std::size_t kMostFds = 253;

IoState state_of(int error_number) {
  switch (error_number) {
    case EAGAIN:
      return IoState::kWouldBlock;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return IoState::kClosed;
    default:
      return IoState::kDone;  // a real error
  }
}

void take_fds(const msghdr& message, std::size_t max_fds, Received& received) {
  for (const cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(c))) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || received.fds.size() > max_fds) {
    received.fds_dropped = true;
    received.fds.clear();
  }
}

}  // namespace

Result<Received> receive_packet(int fd, std::span<std::byte> buffer, std::size_t max_fds) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFds * sizeof(int))> control;
  if (max_fds > kMostFds) max_fds = kMostFds;
  iovec data{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (max_fds > 0) {
    message.msg_control = control.data();
    // CMSG_LEN, as the padding of CMSG_SPACE would let one more descriptor in.
    message.msg_controllen = CMSG_LEN(max_fds * sizeof(int));
  }
  ssize_t size = -1;
  do {
    size = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  Received received;
  if (size < 0) {
    received.state = state_of(errno);
    if (received.state == IoState::kDone) return fail_errno("cannot receive", errno);
    return received;
  }
  received.size = static_cast<std::size_t>(size);
  received.truncated = (message.msg_flags & MSG_TRUNC) != 0;
  take_fds(message, max_fds, received);
  if (size == 0) {
    received.state = IoState::kClosed;
    received.fds.clear();
  }
  return received;
}

bool has_packet(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool has_unread(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes != 0;
}

Result<IoState> send_packet(int fd, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMostFds) return fail(Code::kInternal, "too many descriptors for one packet");
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fds.size() > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t size = -1;
  do {
    size = ::sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  if (size >= 0) return IoState::kDone;
  const IoState state = state_of(errno);
  if (state == IoState::kDone) return fail_errno("cannot send", errno);
  return state;
}

Result<Sent> send_some(int fd, std::span<const char> bytes) {
  ssize_t size = -1;
  do {
    size = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  if (size >= 0) return Sent{IoState::kDone, static_cast<std::size_t>(size)};
  const IoState state = state_of(errno);
  if (state == IoState::kDone) return fail_errno("cannot send", errno);
  return Sent{state, 0};
}

Result<std::pair<Fd, Fd>> make_socket_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return fail_errno("cannot make a socket pair", errno);
  }
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

}  // namespace gpurota::ipc
