// TLS with GnuTLS, whose header stays in tls.cpp. In a build without GnuTLS (no_tls.cpp),
// make_tls() returns an error. Never waits for a peer; reads two small files. One thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota::web {

// One connection. receive() and send() behave like recv(2) and send(2) on a nonblocking socket.
class TlsSession {
 public:
  virtual ~TlsSession() = default;
  virtual ssize_t receive(char* into, std::size_t size) = 0;
  virtual ssize_t send(std::string_view text) = 0;
  // Tells the peer that no more data follows.
  virtual void finish() = 0;
  virtual bool wants_to_write() const = 0;
};

// The certificate and its key.
class Tls {
 public:
  // The files are checked for changes at most this often.
  static constexpr std::chrono::seconds kCheckEvery{1};

  virtual ~Tls() = default;

  // Null: out of memory. Does not own the socket.
  virtual std::unique_ptr<TlsSession> accept(int socket) = 0;
  // Loads changed files. Error: they are not usable, and the old ones stay in use; reported once
  // for each change.
  virtual Result<void> refresh(std::chrono::steady_clock::time_point now) = 0;
};

// The files are PEM; the certificate file includes the certificates that signed it.
Result<std::unique_ptr<Tls>> make_tls(const std::string& certificate, const std::string& key);

}  // namespace gpurota::web
