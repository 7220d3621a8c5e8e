#include "daemon/doorman.h"

#include "base/log.h"

namespace gpurota::daemon {

Result<void> Doorman::listen(const std::string& path, const ipc::ListenOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(ipc::Listener listener, ipc::Listener::make(path, options));
  GPUROTA_ASSIGN_OR_RETURN(listening_, loop_.watch_fd(listener.fd(), false, ports::Urgency::kClient,
                                                      [this](unsigned) { on_connection(); }));
  listener_.emplace(std::move(listener));
  return {};
}

void Doorman::on_connection() {
  auto accepted = listener_->accept();
  if (!accepted) {
    log::warn("cannot accept a " + rules_.who + ", ignoring",
              {{"error", accepted.error().message}});
    return;
  }
  if (!*accepted) return;
  auto peer = ipc::read_peer((*accepted)->get());
  if (!peer) return;
  if (rules_.count(peer->uid) >= rules_.most_per_user()) {
    log::warn("a user has too many connections, refusing a " + rules_.who, {{"uid", peer->uid}});
    return;
  }
  rules_.welcome(std::move(**accepted), std::move(*peer));
}

}  // namespace gpurota::daemon
