// The connection of one browser: plain, or with TLS. Never waits. Used by HttpServer and Viewers,
// on their thread.
#pragma once

#include "base/fd.h"
#include "web/tls.h"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace gpurota::web {

class Stream {
 public:
  Stream() = default;
  explicit Stream(Fd socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  void reset() {
    tls_.reset();
    socket_.reset();
  }

  // Like recv(2) and send(2): -1 and errno, which is EAGAIN where the call would block. A text that
  // could not be sent must be sent again unchanged.
  ssize_t receive(char* into, std::size_t size) {
    return tls_ ? tls_->receive(into, size) : ::recv(fd(), into, size, 0);
  }
  ssize_t send(std::string_view text) {
    return tls_ ? tls_->send(text) : ::send(fd(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Ends the output.
  void finish() {
    if (tls_) tls_->finish();
    (void)::shutdown(fd(), SHUT_WR);
  }
  // The event to poll for before receive() can progress: TLS may have to write first.
  short reads_by() const {
    return static_cast<short>(tls_ && tls_->wants_to_write() ? POLLOUT : POLLIN);
  }

 private:
  Fd socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace gpurota::web
