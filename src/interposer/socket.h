// Descriptors inside somebody else's program.
//
// A program may close all descriptors it does not know (daemons do), reuse the numbers, or fork. So a
// socket of ours is known by its inode, looked at before each use: we never write into, read from or
// close a file that has taken its number.
#pragma once

#include "abi/wire.h"
#include "interposer/state.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// Makes the process's table of descriptors large enough for ours. With several threads the kernel waits for
// an RCU grace period with that (9 ms seen between cuInit and the first context, Linux 6.18), with one it
// costs a microsecond: to be called while the program has not begun.
void widen_descriptor_table();

// Takes over `fd`, moved out of the range that programs use for their own. False if it is no file.
bool adopt_socket(int fd, Socket* out);
bool is_ours(int fd, uint64_t inode);
inline bool is_ours(const Socket& socket) {
  return socket.open && is_ours(socket.fd, socket.inode);
}
void close_socket(Socket* socket);

// A SOCK_SEQPACKET socket connected to `path`, or -1.
int connect_to(const char (&path)[108]);

// Descriptors that came with a packet; closed with it, but for those that were taken.
class Descriptors {
 public:
  static constexpr uint32_t kMost = GPUROTA_SHARED_BLOCKS;
  Descriptors() = default;
  ~Descriptors() { close(); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  uint32_t count() const { return count_; }
  int operator[](uint32_t i) const { return fds_[i]; }
  // Its caller closes it.
  int take(uint32_t i);
  void add(int fd);
  void close();

 private:
  int fds_[kMost];
  uint32_t count_ = 0;
};

inline constexpr long kEndOfFile = 0;
inline constexpr long kBroken = -1;  // an error, a packet longer than `room`, or no longer ours
inline constexpr long kDeadline = -2;

// One packet, no later than `deadline_ms`, with its descriptors; with none if there is no room for all of them. Its
// bytes, or one of the above.
long receive_packet(const Socket& socket, void* buffer, size_t room, Descriptors* fds,
                    int64_t deadline_ms);

// Whether all of `size` bytes went out as one packet no later than `deadline_ms`, with `fds`, if there are any.
bool send_packet(const Socket& socket, const void* data, size_t size, int64_t deadline_ms,
                 const Descriptors* fds = nullptr);

// What a child inherits is its parent's voice. The numbers are remembered outside the wiped state,
// and the child closes them when it first needs the daemon.
enum SocketRole { kCallSocket, kEventSocket, kSocketRoles };
void remember_socket(SocketRole role, const Socket& socket);
void close_inherited();

}  // namespace gpurota::interposer
