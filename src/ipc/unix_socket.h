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
  mode_t mode = 0600;  // who may connect: those who may write to the socket file
  std::optional<gid_t> group;
  int backlog = 256;
  int passed = -1;  // listens at the path already, on behalf of systemd: taken over
};

// A listening socket, close-on-exec and non-blocking. Its file is removed when it is destroyed,
// unless the socket was passed: then clients wait there for the next daemon.
class Listener {
 public:
  // Nobody can connect before mode and group are set. The socket file of a daemon that died is
  // replaced; a socket that answers, or a file that is none, is an error that says so. So is a
  // passed socket that is not of the type, not at the path, or not ours; its file is given mode and
  // group, but somebody may have connected before that.
  static Result<Listener> make(const std::string& path, const ListenOptions& options);

  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&& other) = delete;
  ~Listener();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  // One waiting connection, close-on-exec and non-blocking; empty if there is none (any more).
  // kLimit when the process is out of descriptors: one waiting peer has then been hung up on, so
  // that the loop does not spin.
  Result<std::optional<Fd>> accept();

 private:
  Listener(std::string path, Fd fd, bool passed);
  static Result<Listener> take_over(const std::string& path, const ListenOptions& options);

  std::string path_;
  Fd fd_;
  bool passed_;
  Fd spare_;  // given up to be able to accept and close when there are no descriptors left
};

// A blocking, close-on-exec connection. Waits up to `timeout` where the daemon is too busy to
// accept. kUnavailable if nobody listens there, kDenied if we may not connect, kTimeout.
Result<Fd> connect_unix(const std::string& path, int type, std::chrono::milliseconds timeout);

// Whether somebody listens at `path`, without waiting.
bool answers(const std::string& path, int type);

// Nobody can send descriptors to this socket from now on, nor to those that a listening one
// accepts: they get EPERM. Else the last close of what they send, such as a connection with
// SO_LINGER, may be in our thread, and take as long as they like. Linux 6.16 and newer; false: the
// kernel cannot.
bool refuse_descriptors(int fd);

// Makes an accepted or connected socket wait, or not.
Result<void> set_blocking(int fd, bool blocking);

}  // namespace gpurota::ipc
