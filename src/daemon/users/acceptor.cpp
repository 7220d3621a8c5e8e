#include "daemon/users/acceptor.h"

#include "base/log.h"
#include "base/memory_reserve.h"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace gpurota::daemon {

Result<void> Acceptor::listen(const std::string& path, const ipc::ListenOptions& options) {
  GPUROTA_TRY(dispatcher_.start());
  GPUROTA_ASSIGN_OR_RETURN(ipc::Listener listener, ipc::Listener::make(path, options));
  GPUROTA_ASSIGN_OR_RETURN(listening_, loop_.watch_fd(listener.fd(), false, ports::Urgency::kClient,
                                                      [this](unsigned) { on_connection(); }));
  listener_.emplace(std::move(listener));
  if (options.passed >= 0) only_ = options.group;
  return {};
}

void Acceptor::close() {
  listening_.reset();
  listener_.reset();
  // Closes the connections that wait here: their clients try again, like the clients that wait in
  // the kernel.
  for (const auto& [key, waiting] : waiting_) dispatcher_.remove(waiting.user, key);
  waiting_.clear();
}

Result<void> Acceptor::check_number(uid_t user, std::size_t more) const {
  const long most = rules_.most_per_user();
  if (rules_.count(user) + static_cast<long>(more) < most) return {};
  return fail(Code::kLimit, fmt::format("you have {} connections to gpurotad, as many as the site "
                                        "allows (max_connections_per_user)",
                                        most));
}

// A library that is refused here tries again, as if no daemon ran.
Result<UserBudgets::Held> Acceptor::admit(const ipc::Peer& peer) const {
  const uid_t user = peer.uid;
  if (only_ && user != 0 && user != ::geteuid() && !peer.in_group(*only_)) {
    return fail(Code::kDenied, "only members of the group that gpurota.toml names may use gpurota");
  }
  if (!memory_reserve::fill()) {
    return fail(Code::kUnavailable, "gpurotad is short of memory: try again");
  }
  GPUROTA_TRY(check_number(user, 0));
  return rules_.budgets.take(user, Budget::kDescriptors);
}

void Acceptor::on_connection() {
  auto accepted = listener_->accept();
  if (!accepted) {
    log::warn("cannot accept a " + rules_.who + ", ignoring",
              {{"error", accepted.error().message}});
    return;
  }
  if (!*accepted) return;
  const auto user = ipc::read_peer_uid((*accepted)->get());
  if (!user) return;
  const TimePoint begun = loop_.now();
  if (!dispatcher_.queue().admit_at_once(*user, begun))
    return put_off(std::move(**accepted), *user);
  let_in(std::move(**accepted));
  dispatcher_.queue().charge_at_once(*user, begun, loop_.now());
}

// A connection that waits counts as one of its user's connections.
void Acceptor::put_off(Fd fd, uid_t user) {
  const auto own = std::count_if(waiting_.begin(), waiting_.end(),
                                 [user](const auto& each) { return each.second.user == user; });
  if (const auto may = check_number(user, static_cast<std::size_t>(own)); !may) {
    return turn_away(fd, user, may.error());
  }
  auto held = rules_.budgets.take(user, Budget::kDescriptors);
  if (!held) return turn_away(fd, user, held.error());
  waiting_.emplace(++last_, Waiting{std::move(fd), user, std::move(*held)});
  dispatcher_.add(user, last_);
}

void Acceptor::serve(const std::uint64_t& key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  Fd fd = std::move(found->second.fd);
  waiting_.erase(found);
  let_in(std::move(fd));
}

void Acceptor::let_in(Fd fd) {
  auto peer = ipc::read_peer(fd.get());
  if (!peer) return;
  auto held = admit(*peer);
  if (!held) return turn_away(fd, peer->uid, held.error());
  rules_.welcome(std::move(fd), std::move(*peer), std::move(*held));
}

void Acceptor::turn_away(const Fd& fd, uid_t user, const Error& why) const {
  log::warn("turning away a " + rules_.who, {{"uid", user}, {"reason", why.message}});
  if (rules_.turn_away) rules_.turn_away(fd, why);
}

}  // namespace gpurota::daemon
