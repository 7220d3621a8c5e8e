// Sign-in at the web page: links that sign a user in once, and the sessions that follow
// (docs/design/web-sessions.md). State thread only; knows nothing of HTTP.
//
// A session belongs to the program that serves the page: only that program's user can use the token
// of the session, and the session is over when that program has gone. Sessions are not stored: all
// of them are over when the daemon ends. Bounded for each user, and for all of them together.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "core/time.h"
#include "daemon/users/users.h"
#include "ports/event_loop.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

using WebSessionId = std::uint32_t;
std::string web_session_text(WebSessionId id);  // "W3"

class WebSessions {
 public:
  static constexpr std::chrono::seconds kLinkLife{120};
  static constexpr std::size_t kMostLinksPerUser = 4;
  static constexpr std::size_t kMostSessionsPerUser = 16;
  static constexpr std::size_t kMostOfAll = 4096;
  static constexpr std::chrono::seconds kRetries{
      10};                                           // refused servers try again within this period
  static constexpr std::chrono::seconds kSweep{60};  // between two checks of the signed-in users

  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    Users& users;
    std::function<std::string()>
        make_token;  // 32 hex digits that nobody can guess; empty: no random bytes
    std::function<WallTime()> wall_clock;
  };
  struct Session {
    WebSessionId id = 0;
    uid_t uid = 0;
    bool by_proxy = false;
    std::string from;
    WallTime since{}, used{}, ends{};
  };
  struct Opened {
    std::string token;
    Session session;
  };

  explicit WebSessions(Parts parts) : parts_(std::move(parts)) {}

  // A program of this user serves the page at `url` from now on, until remove_server().
  std::uint32_t add_server(uid_t uid, std::string url);
  // A gpurota-web runs without a page from now on, until remove_server(). `why`: the reason, a
  // sentence.
  std::uint32_t add_server_without_page(std::string why);
  // A program of this user has tried to serve the page, and was refused.
  void refuse_server(std::string user);
  // Ends the links and sessions of the server.
  void remove_server(std::uint32_t server);

  // The URL of the page, with the secret after '#'. If the user has too many links, the new link
  // replaces the oldest. kNotFound: gpurota-web is not running. kUnavailable: gpurota-web runs, but
  // nobody can sign in there.
  Result<std::string> make_link(uid_t uid);
  // The user whom the link would sign in. The link stays valid.
  Result<uid_t> user_of_link(uid_t server, std::string_view secret);
  // Signs in the user of the link. The link is then used up, even if the session cannot be opened.
  // A wrong secret or another server does not use up the link. `server`: the uid of the program
  // that serves the page.
  Result<Opened> sign_in(uid_t server, std::string_view secret, std::string from);
  // Signs in a user whom the server has authenticated.
  Result<Opened> sign_in_by_proxy(uid_t server, uid_t uid, std::string from);
  // kDenied: `uid` does not serve the page, so it can neither open nor use sessions.
  Result<void> check_server(uid_t uid) const;

  // The session of a token; the session counts as used now. Null: the session is over, or never
  // existed.
  const Session* use(uid_t server, std::string_view token);
  // The sessions that are not over, in order.
  std::vector<Session> list();
  void end(WebSessionId id) { sessions_.erase(id); }
  void end_all_of(uid_t uid);

 private:
  struct Server {
    uid_t uid = 0;
    std::string url;
  };
  struct Link {
    uid_t uid = 0;
    std::uint32_t server = 0;
    std::string secret;
    TimePoint until{};
  };
  struct Entry {
    Session session;
    std::uint32_t server = 0;
    std::string secret;
    TimePoint begun{}, used_at{};
  };

  // Why there is no server.
  Error no_server() const;
  // The number of a link that is valid and belongs to this server.
  Result<std::uint32_t> find_link(uid_t server, std::string_view secret);
  std::optional<std::uint32_t> server_of(uid_t uid) const;
  bool is_over(const Entry& entry) const;
  Result<std::string> make_secret() const;
  Result<Opened> open(std::uint32_t server, uid_t uid, std::string from, bool by_proxy);
  void make_room(uid_t uid);
  void remove_old();
  void sweep_later();
  void sweep();

  Parts parts_;
  std::uint32_t last_server_ = 0, last_link_ = 0;
  WebSessionId last_session_ = 0;
  std::map<std::uint32_t, Server> servers_;
  std::map<std::uint32_t, std::string> pageless_;  // the reasons
  std::string refused_{};                          // the user of the last server that was refused
  TimePoint refused_at_{};
  std::map<std::uint32_t, Link> links_;
  std::map<WebSessionId, Entry> sessions_;
  std::size_t asked_ = 0;  // questions to the account database that it has not answered
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
