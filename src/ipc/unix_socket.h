// Unix sockets by path: listening, accepting, connecting. The daemon listens, clients connect.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::ipc {

struct ListenOptions {
  int type = 0;        // SOCK_STREAM or SOCK_SEQPACKET
  mode_t mode = 0600;  // of the socket file: those who may write to it may connect
  std::optional<gid_t> group;
  int backlog = 256;
  int passed = -1;  // a socket of systemd's that listens at the path already; taken over
};

// A listening socket, close-on-exec and non-blocking. The destructor removes its file, unless the
// socket was passed: clients then wait there for the next daemon.
class Listener {
 public:
  // Nobody can connect before mode and group are set. The socket file of a daemon that died is
  // replaced. A socket that answers, or a file that is not a socket, is an error that says so. A
  // passed socket of another type, at another path or of another user is an error too. The file of
  // a passed socket is given mode and group, but somebody may have connected before that.
  static Result<Listener> make(const std::string& path, const ListenOptions& options);

  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&& other) = delete;
  ~Listener();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  // One waiting connection, close-on-exec and non-blocking; empty if there is none (any more).
  // kLimit when the process is out of descriptors: one waiting connection was then closed, so that
  // the loop does not spin.
  Result<std::optional<Fd>> accept();

 private:
  Listener(std::string path, Fd fd, bool passed);
  static Result<Listener> take_over(const std::string& path, const ListenOptions& options);

  std::string path_;
  Fd fd_;
  bool passed_;
  Fd spare_;  // closed when no descriptors are left, so that accept() has one to use
};

// A blocking, close-on-exec connection. Waits up to `timeout` where the daemon is too busy to
// accept. kUnavailable if nobody listens there, kDenied if we may not connect, kTimeout.
Result<Fd> connect_unix(const std::string& path, int type, std::chrono::milliseconds timeout);

// Whether somebody listens at `path`, without waiting.
bool answers(const std::string& path, int type);

// From now on nobody can send descriptors to this socket, nor to those that a listening socket
// accepts: senders get EPERM. Otherwise our thread may make the last close of a descriptor that was
// sent, such as a connection with SO_LINGER, which takes as long as its sender likes. Linux 6.16
// and newer; false: the kernel cannot.
bool refuse_descriptors(int fd);

// Makes an accepted or connected socket wait, or not.
Result<void> set_blocking(int fd, bool blocking);

}  // namespace gpurota::ipc
