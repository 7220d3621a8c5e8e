#include "web/tls.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gnutls/gnutls.h>
#include <sys/stat.h>

namespace gpurota::web {
namespace {

constexpr const char* kPriorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

using Credentials = std::shared_ptr<gnutls_certificate_credentials_st>;

// Distinguishes one version of a file from another.
struct Stamp {
  ino_t inode = 0;
  off_t size = 0;
  timespec changed{};
  bool operator==(const Stamp& other) const {
    return inode == other.inode && size == other.size && changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};

Stamp stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_ino, found.st_size, found.st_mtim};
}

class Session final : public TlsSession {
 public:
  Session(gnutls_session_t session, Credentials credentials)
      : session_(session), credentials_(std::move(credentials)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override { gnutls_deinit(session_); }

  ssize_t receive(char* into, std::size_t size) override {
    if (!shake_hands()) return -1;
    const ssize_t got = gnutls_record_recv(session_, into, size);
    // A browser that just closes the connection has sent everything.
    return got == GNUTLS_E_PREMATURE_TERMINATION ? 0 : result(got);
  }
  ssize_t send(std::string_view text) override {
    if (!shake_hands()) return -1;
    return result(gnutls_record_send(session_, text.data(), text.size()));
  }
  void finish() override { (void)gnutls_bye(session_, GNUTLS_SHUT_WR); }
  bool wants_to_write() const override {
    return !shaken_ && gnutls_record_get_direction(session_) == 1;
  }

 private:
  static ssize_t result(ssize_t done) {
    if (done >= 0) return done;
    const bool again = done == GNUTLS_E_AGAIN || done == GNUTLS_E_INTERRUPTED;
    errno = again ? EAGAIN : EPROTO;
    return -1;
  }
  bool shake_hands() {
    if (shaken_) return true;
    int done = GNUTLS_E_WARNING_ALERT_RECEIVED;
    // A packet has few warnings, and none needs an answer.
    for (int tries = 0; tries < 4 && done == GNUTLS_E_WARNING_ALERT_RECEIVED; ++tries) {
      done = gnutls_handshake(session_);
    }
    shaken_ = done == 0;
    return shaken_ || result(done) >= 0;
  }

  gnutls_session_t session_;
  Credentials credentials_;  // used by the session
  bool shaken_ = false;
};

class GnuTls final : public Tls {
 public:
  GnuTls(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}
  GnuTls(const GnuTls&) = delete;
  GnuTls& operator=(const GnuTls&) = delete;
  ~GnuTls() override { gnutls_free(tickets_.data); }

  Result<void> begin() {
    if (gnutls_session_ticket_key_generate(&tickets_) != 0) {
      return fail(Code::kUnavailable, "TLS cannot be used: no random bytes can be had");
    }
    return load();
  }

  std::unique_ptr<TlsSession> accept(int socket) override {
    gnutls_session_t session = nullptr;
    const unsigned flags = GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL;
    if (gnutls_init(&session, flags) != 0) return nullptr;
    auto made = std::make_unique<Session>(session, credentials_);
    const bool ready =
        gnutls_priority_set_direct(session, kPriorities, nullptr) == 0 &&
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials_.get()) == 0 &&
        gnutls_session_ticket_enable_server(session, &tickets_) == 0;
    if (!ready) return nullptr;
    gnutls_transport_set_int(session, socket);
    return made;
  }

  Result<void> refresh(std::chrono::steady_clock::time_point now) override {
    if (now - checked_ < kCheckEvery) return {};
    checked_ = now;
    const auto seen = std::pair(stamp_of(certificate_), stamp_of(key_));
    return seen == stamps_ ? Result<void>() : load();
  }

 private:
  Result<void> load() {
    stamps_ = {stamp_of(certificate_), stamp_of(key_)};
    gnutls_certificate_credentials_t made = nullptr;
    if (gnutls_certificate_allocate_credentials(&made) != 0) {
      return fail(Code::kUnavailable, "no memory for a certificate");
    }
    Credentials next(made, gnutls_certificate_free_credentials);
    const int done = gnutls_certificate_set_x509_key_file(made, certificate_.c_str(), key_.c_str(),
                                                          GNUTLS_X509_FMT_PEM);
    if (done < 0) {
      return fail(Code::kInvalid,
                  fmt::format("the certificate {} and the key {} cannot be used: {}", certificate_,
                              key_, gnutls_strerror(done)));
    }
    credentials_ = std::move(next);
    return {};
  }

  std::string certificate_, key_;
  Credentials credentials_;
  gnutls_datum_t tickets_{};
  std::pair<Stamp, Stamp> stamps_;
  std::chrono::steady_clock::time_point checked_{};
};

}  // namespace

Result<std::unique_ptr<Tls>> make_tls(const std::string& certificate, const std::string& key) {
  auto tls = std::make_unique<GnuTls>(certificate, key);
  GPUROTA_TRY(tls->begin());
  return std::unique_ptr<Tls>(std::move(tls));
}

}  // namespace gpurota::web
