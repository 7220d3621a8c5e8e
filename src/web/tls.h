// TLS by GnuTLS, whose header stays in tls.cpp. Where gpurota-web is built without it (no_tls.cpp),
// make_tls() says so. Never waits for a peer; reads two small files. One thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota::web {

// One connection. receive() and send() are as recv(2) and send(2) on a socket that does not block.
class TlsSession {
 public:
  virtual ~TlsSession() = default;
  virtual ssize_t receive(char* into, std::size_t size) = 0;
  virtual ssize_t send(std::string_view text) = 0;
  // Says that nothing more comes.
  virtual void finish() = 0;
  virtual bool wants_to_write() const = 0;
};

// The certificate and its key.
class Tls {
 public:
  // The files are checked for changes so often at the most.
  static constexpr std::chrono::seconds kCheckEvery{1};

  virtual ~Tls() = default;

  // Null: no memory for it. Does not own the socket.
  virtual std::unique_ptr<TlsSession> accept(int socket) = 0;
  // Takes new files up. An error: they cannot be used, and the old ones are used on; said once for
  // each change.
  virtual Result<void> refresh(std::chrono::steady_clock::time_point now) = 0;
};

// PEM files; the certificate with those that signed it.
Result<std::unique_ptr<Tls>> make_tls(const std::string& certificate, const std::string& key);

}  // namespace gpurota::web
