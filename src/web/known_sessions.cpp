#include "web/known_sessions.h"

#include "base/make_room.h"

#include <algorithm>

namespace gpurota::web {

void KnownSessions::add(const std::string& token, uid_t uid, Clock::time_point now) {
  const auto own = std::count_if(sessions_.begin(), sessions_.end(),
                                 [uid](const auto& each) { return each.second.uid == uid; });
  if (static_cast<std::size_t>(own) >= kMostOfUser) remove_oldest_of(uid);
  if (sessions_.size() >= kMost) {
    remove_oldest_of(who_makes_room(
        sessions_, [](const auto& each) { return each.second.uid; }, uid));
  }
  // No user has more sessions than the newcomer would have, so none is removed.
  if (sessions_.size() >= kMost) return;
  sessions_.insert_or_assign(token, Session{uid, now});
}

void KnownSessions::remove_oldest_of(uid_t uid) {
  auto oldest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (at->second.uid != uid) continue;
    if (oldest == sessions_.end() || at->second.at < oldest->second.at) oldest = at;
  }
  if (oldest != sessions_.end()) sessions_.erase(oldest);
}

void KnownSessions::remove(std::string_view token) {
  const auto found = sessions_.find(token);
  if (found != sessions_.end()) sessions_.erase(found);
}

KnownSessions::Call KnownSessions::take_call(std::string_view token, Clock::time_point now) {
  const auto found = sessions_.find(token);
  if (found == sessions_.end()) return Call::kUnknown;
  Session& session = found->second;
  session.at = now;
  return session.calls.take(now, kCalls) ? Call::kTaken : Call::kTooFast;
}

}  // namespace gpurota::web
