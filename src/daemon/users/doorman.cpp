#include "daemon/users/doorman.h"

#include "base/log.h"
#include "base/memory_reserve.h"

#include <fmt/format.h>

#include <unistd.h>

namespace gpurota::daemon {

Result<void> Doorman::listen(const std::string& path, const ipc::ListenOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(ipc::Listener listener, ipc::Listener::make(path, options));
  GPUROTA_ASSIGN_OR_RETURN(listening_, loop_.watch_fd(listener.fd(), false, ports::Urgency::kClient,
                                                      [this](unsigned) { on_connection(); }));
  listener_.emplace(std::move(listener));
  if (options.passed >= 0) only_ = options.group;
  return {};
}

void Doorman::close() {
  listening_.reset();
  listener_.reset();
}

// To a library a door that is shut is a daemon which is away: it tries again.
Result<UserBudgets::Held> Doorman::admit(const ipc::Peer& peer) const {
  const uid_t user = peer.uid;
  if (only_ && user != 0 && user != ::geteuid() && !peer.in_group(*only_)) {
    return fail(Code::kDenied, "only members of the group that gpurota.toml names may use gpurota");
  }
  if (!memory_reserve::fill()) {
    return fail(Code::kUnavailable, "gpurotad is short of memory: try again");
  }
  const long most = rules_.most_per_user();
  if (rules_.count(user) >= most) {
    return fail(Code::kLimit,
                fmt::format("you have {} connections to gpurotad, as many as the site "
                            "allows (max_connections_per_user)",
                            most));
  }
  return rules_.budgets.take(user, Budget::kDescriptors);
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
  auto held = admit(*peer);
  if (!held) {
    log::warn("turning away a " + rules_.who,
              {{"uid", peer->uid}, {"reason", held.error().message}});
    if (rules_.turn_away) rules_.turn_away(**accepted, held.error());
    return;
  }
  rules_.welcome(std::move(**accepted), std::move(*peer), std::move(*held));
}

}  // namespace gpurota::daemon
