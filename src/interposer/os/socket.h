// Descriptors inside somebody else's program.
//
// A program may close all descriptors it does not know (daemons do), reuse the numbers, or fork. So
// a socket of ours is identified by its inode, which is checked before each use, and is used under
// a number that the program has never seen (HeldSocket). If a file of the program's has taken the
// socket's number, we neither read nor write that file.
#pragma once

#include "abi/wire.h"
#include "interposer/os/sys.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// No GPU has this much memory: a figure beyond it is garbage.
constexpr uint64_t kSaneBytes = uint64_t{1} << 50;
// The pause between two attempts to connect.
constexpr int64_t kRetryMs = 20;

// Makes the process's descriptor table large enough for ours. Call before the program begins: with
// one thread this costs a microsecond, but with several threads the kernel waits for an RCU grace
// period (9 ms seen between cuInit and the first context, Linux 6.18).
void widen_descriptor_table();

// Takes over `fd`, and moves it out of the range that programs use. False, with `fd` closed: not a
// socket.
bool adopt_socket(int fd, Socket* out);
bool is_ours(int fd, uint64_t inode);
inline bool is_ours(const Socket& socket) {
  return socket.open && is_ours(socket.fd, socket.inode);
}
void close_socket(Socket* socket);
// Closes a socket that is known by number and inode only. Between the check and the close, another
// thread of the program may close the number and open its own file under it; that file is then
// closed, because no system call checks and closes in one step.
void close_if_ours(int fd, uint64_t inode);
// Shuts the socket down for both sides. A thread of ours that waits for the socket continues and
// closes the socket.
void shut_down(int fd, uint64_t inode);

// A socket under a second number for the length of one call. Another thread of the program may
// close our number and reuse it at any time, even between the check and the use. Only we know the
// second number, and we check that it refers to our socket after we have taken it. One case
// remains: while the second number is in use (for about a microsecond), a thread closes all
// numbers, known or not, and another thread, which has kLowestHeld files open, opens one more,
// which gets the second number. release() notices that case afterwards. Must not be kept over a
// wait: a child that is forked meanwhile would inherit the number, and nothing closes it there.
class HeldSocket {
 public:
  explicit HeldSocket(const Socket& socket);
  ~HeldSocket() { release(); }
  HeldSocket(const HeldSocket&) = delete;
  HeldSocket& operator=(const HeldSocket&) = delete;

  // Negative: the socket is no longer ours.
  int fd() const { return fd_; }
  // Closes the second number; false if the socket was no longer ours.
  bool release();

 private:
  int fd_ = -1;
  bool second_ = false;  // `fd_` is the second number, which release() closes
  uint64_t inode_;
};

// A SOCK_SEQPACKET socket connected to `path`, or -1.
int connect_to(const char (&path)[108]);

// Descriptors that came with a packet. The destructor closes all that were not taken.
class Descriptors {
 public:
  static constexpr uint32_t kMost = GPUROTA_SHARED_BLOCKS;
  Descriptors() = default;
  ~Descriptors() { close(); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  uint32_t count() const { return count_; }
  int operator[](uint32_t i) const { return fds_[i]; }
  // The caller closes the descriptor.
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

// Receives one packet no later than `deadline_ms`, with its descriptors; with none if there is no
// room for all of them. Returns the number of bytes, or one of the constants above.
long receive_packet(const Socket& socket, void* buffer, size_t room, Descriptors* fds,
                    int64_t deadline_ms);

// Whether all of `size` bytes went out as one packet no later than `deadline_ms`, with `fds`, if
// there are any.
bool send_packet(const Socket& socket, const void* data, size_t size, int64_t deadline_ms,
                 const Descriptors* fds = nullptr);

// A socket that a child inherits speaks for its parent. Its number is recorded outside the wiped
// state, and the child closes it when it first needs the daemon.
enum SocketRole { kCallSocket, kEventSocket, kSocketRoles };
void remember_socket(SocketRole role, const Socket& socket);
void close_inherited();

}  // namespace gpurota::interposer
