// Sessions of users who are signed in at the page, as gpurota-web sees them. SignedIn registers the
// page with the daemon, exchanges the secrets of links for sessions, and passes on calls that have
// a session (docs/design/web-sessions.md). The daemon decides what a session may do.
//
// A session's token has two halves. One is in a cookie, which no script can read. The page stores
// the other for its origin and sends it in a header. No other site, and nothing else on this host,
// can see that half. A request needs both.
#pragma once

#include "client/locate.h"
#include "web/http_request.h"
#include "web/known_sessions.h"
#include "web/proxy.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace gpurota::web {

class SignedIn {
 public:
  // Less than the server's timeout for an answer (http_server.h).
  static constexpr std::chrono::milliseconds kPatience{8000};

  // `complain`: called on another thread with the reason why nobody can sign in; once for each
  // reason.
  SignedIn(client::Location location, Proxy proxy, std::function<void(const std::string&)> complain)
      : location_(std::move(location)), proxy_(std::move(proxy)), complain_(std::move(complain)) {}
  ~SignedIn();
  SignedIn(const SignedIn&) = delete;
  SignedIn& operator=(const SignedIn&) = delete;

  // Registers the page at `url` with the daemon (ServeWeb), on a thread of its own, as long as this
  // object lives. "no-page:…" instead of a URL: there is no page, for the reason after the colon.
  // Call it once.
  Result<void> begin(std::string url);
  // How people can sign in now: none, link, proxy (links work then, too). Any thread.
  const char* sign_in_way() const;

  // Checks a POST: the refusal, as far as it can be decided at once. nullopt: call act(). Any
  // thread.
  std::optional<HttpResponse> refuse(const HttpRequest& request);
  // Waits for the daemon. One call at a time.
  HttpResponse act(const HttpRequest& request);

  // For pages that only signed-in users see (PageLevel::kSignedIn): like refuse(), for a GET.
  // nullopt: call admit().
  std::optional<HttpResponse> refuse_reader(const HttpRequest& request);
  // nullopt: the daemon accepts the session. Waits for the daemon; called on a different thread
  // from act().
  std::optional<HttpResponse> admit(const HttpRequest& request);

 private:
  using Clock = std::chrono::steady_clock;
  // A connection to the daemon, used by one thread.
  class Line {
   public:
    explicit Line(const client::Location& location) : location_(location) {}
    Result<std::string> ask(const std::string& call, bool read_only,
                            std::chrono::milliseconds patience);

   private:
    const client::Location& location_;
    std::optional<client::Connection> connection_{};
  };
  void serve();
  Result<void> serve_once();
  void set_open(bool open);
  std::optional<HttpResponse> slow_down(std::string_view token);
  HttpResponse call_by_proxy(const std::string& user, const HttpRequest& request);
  Result<std::string> token_by_proxy(const std::string& user, const HttpRequest& request);
  Result<proto::SignInByProxy::Reply> sign_in_by_proxy(const std::string& user,
                                                       const HttpRequest& request);
  std::optional<HttpResponse> check_session(const HttpRequest& request, const std::string& user);
  std::optional<HttpResponse> admit_with(const std::string& token);
  HttpResponse call_with(const std::string& token, const HttpRequest& request);
  HttpResponse show_link(const proto::GetWebLink& call);
  HttpResponse sign_in(const HttpRequest& request);

  client::Location location_;
  Proxy proxy_;
  std::function<void(const std::string&)> complain_;
  std::string url_;
  Line actor_{location_}, reader_{location_};  // for act(), and for admit()
  std::mutex signing_in_;                      // one sign-in by the proxy at a time
  mutable std::mutex mutex_;                   // guards the members below
  std::condition_variable wake_;
  bool open_ = false, over_ = false;
  KnownSessions sessions_;
  std::map<std::string, std::string> by_proxy_;  // tokens by the proxy's user names
  std::thread thread_;
};

}  // namespace gpurota::web
