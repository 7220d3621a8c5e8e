// Descriptors inside somebody else's program.
//
// A program may close all descriptors it does not know (daemons do), reuse the numbers, or fork. So
// a socket of ours is known by its inode, looked at before each use, and used under a number that
// the program has never seen (HeldSocket): we do not write into or read from a file that has taken
// its number.
#pragma once

#include "abi/wire.h"
#include "interposer/os/sys.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// No GPU has that much; a figure beyond it is garbage.
constexpr uint64_t kSaneBytes = uint64_t{1} << 50;
// Between two tries to reach somebody who is not there.
constexpr int64_t kRetryMs = 20;

// Makes the process's table of descriptors large enough for ours. With several threads the kernel
// waits for an RCU grace period with that (9 ms seen between cuInit and the first context, Linux
// 6.18), with one it costs a microsecond: to be called while the program has not begun.
void widen_descriptor_table();

// Takes over `fd`, moved out of the range that programs use for their own. False if it is no file.
bool adopt_socket(int fd, Socket* out);
bool is_ours(int fd, uint64_t inode);
inline bool is_ours(const Socket& socket) {
  return socket.open && is_ours(socket.fd, socket.inode);
}
void close_socket(Socket* socket);
// The same of a number that is remembered alone. Between the look and the close another thread of
// the program may close it and get the number for a file of its own, which is closed then: there is
// no call that does both.
void close_if_ours(int fd, uint64_t inode);
// Both sides hear that it is over; whoever waits for it here goes on and closes it.
void shut_down(int fd, uint64_t inode);

// A socket under a second number for the length of one call. Another thread of the program may
// close ours and get its number at any time, also between the check of its owner and the use; the
// second number is known to nobody else, and its file is checked after it was taken. One case
// remains: a thread that closes all numbers, known or not, in that microsecond, while another has
// kLowestHeld files open and opens one more. release() notices that case afterwards. Not kept over
// a wait: a child that is forked meanwhile would have it, and nothing closes it there.
class HeldSocket {
 public:
  explicit HeldSocket(const Socket& socket);
  ~HeldSocket() { release(); }
  HeldSocket(const HeldSocket&) = delete;
  HeldSocket& operator=(const HeldSocket&) = delete;

  // Negative: it is not ours any more.
  int fd() const { return fd_; }
  // Closes the number. Whether it was ours to the last.
  bool release();

 private:
  int fd_ = -1;
  bool second_ = false;  // a number of its own, to be closed
  uint64_t inode_;
};

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

// One packet, no later than `deadline_ms`, with its descriptors; with none if there is no room for
// all of them. Its bytes, or one of the above.
long receive_packet(const Socket& socket, void* buffer, size_t room, Descriptors* fds,
                    int64_t deadline_ms);

// Whether all of `size` bytes went out as one packet no later than `deadline_ms`, with `fds`, if
// there are any.
bool send_packet(const Socket& socket, const void* data, size_t size, int64_t deadline_ms,
                 const Descriptors* fds = nullptr);

// A socket that a child inherits speaks for its parent. The numbers are remembered outside the
// wiped state, and the child closes them when it first needs the daemon.
enum SocketRole { kCallSocket, kEventSocket, kSocketRoles };
void remember_socket(SocketRole role, const Socket& socket);
void close_inherited();

}  // namespace gpurota::interposer
