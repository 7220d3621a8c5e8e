// One send or receive on a Unix socket, with descriptors. Used on non-blocking sockets by the
// daemon and on blocking ones by clients; never raises SIGPIPE, never leaks a descriptor to a
// child.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace gpurota::ipc {

enum class IoState {
  kDone,
  kWouldBlock,  // try again when the descriptor is ready (or a blocking socket's timeout is over)
  kClosed,      // the peer is gone
};

struct Received {
  IoState state = IoState::kDone;
  std::size_t size = 0;    // bytes in the buffer
  bool truncated = false;  // the packet was longer than the buffer; its end is lost
  std::vector<Fd> fds;
  bool fds_dropped = false;  // more came than the caller or the process can take: all are closed
};

// Receives one packet (SOCK_SEQPACKET), or what is there (SOCK_STREAM), and up to `max_fds`
// descriptors, close-on-exec. An empty packet cannot be told from the end of the connection, and
// counts as the end.
Result<Received> receive_packet(int fd, std::span<std::byte> buffer, std::size_t max_fds);

// Sends one packet with `fds` (which stay the caller's).
Result<IoState> send_packet(int fd, std::span<const std::byte> bytes,
                            std::span<const int> fds = {});

// Whether receive_packet() would return at once, with a packet or because the peer is gone.
bool has_packet(int fd);
// Whether some of what was sent to the peer is still unread.
bool has_unread(int fd);

// A stream's write: how many bytes the socket took, 0 with kWouldBlock or kClosed.
struct Sent {
  IoState state = IoState::kDone;
  std::size_t size = 0;
};
Result<Sent> send_some(int fd, std::span<const char> bytes);

// Two connected ends of `type`, close-on-exec and non-blocking.
Result<std::pair<Fd, Fd>> make_socket_pair(int type);

}  // namespace gpurota::ipc
