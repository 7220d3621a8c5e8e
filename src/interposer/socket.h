// Descriptors inside somebody else's program.
//
// A program may close all descriptors it does not know (daemons do), reuse the numbers, or fork. So a
// socket of ours is known by its inode, looked at before each use: we never write into, read from or
// close a file that has taken its number.
#pragma once

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

inline constexpr long kEndOfFile = 0;
inline constexpr long kBroken = -1;  // an error, a packet longer than `room`, or no longer ours
inline constexpr long kDeadline = -2;

// One packet, no later than `deadline_ms`, with up to two descriptors (-1: none). Its bytes, or one
// of the above.
long receive_packet(const Socket& socket, void* buffer, size_t room, int fds[2],
                    int64_t deadline_ms);

// Whether all of `size` bytes went out as one packet no later than `deadline_ms`.
bool send_packet(const Socket& socket, const void* data, size_t size, int64_t deadline_ms);

void close_descriptors(int fds[2]);

// What a child inherits is its parent's voice. The numbers are remembered outside the wiped state,
// and the child closes them when it first needs the daemon.
enum SocketRole { kCallSocket, kEventSocket, kSocketRoles };
void remember_socket(SocketRole role, const Socket& socket);
void close_inherited();

}  // namespace gpurota::interposer
