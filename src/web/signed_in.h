// Sessions of users who are signed in at the page, as far as gpurota-web knows them: SignedIn tells
// the daemon that it serves the page, exchanges the secrets of links for sessions, and passes on
// calls that come with one (docs/design/web-sessions.md). The daemon decides what a session may do.
//
// A session's token is in two halves: one in a cookie, which no script can read, and one that the
// page keeps for its origin and sends in a header, which no other site, and nothing else on this
// host, gets to see. A request needs both.
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
  // Below what the server waits for an answer (http_server.h).
  static constexpr std::chrono::milliseconds kPatience{8000};

  // `complain`: says, on another thread, why nobody can sign in; once for each reason.
  SignedIn(client::Location location, Proxy proxy, std::function<void(const std::string&)> complain)
      : location_(std::move(location)), proxy_(std::move(proxy)), complain_(std::move(complain)) {}
  ~SignedIn();
  SignedIn(const SignedIn&) = delete;
  SignedIn& operator=(const SignedIn&) = delete;

  // Tells the daemon on a thread of its own that the page is at `url`, for as long as this lives;
  // "no-page:…": that there is none, and why (ServeWeb). Once.
  Result<void> begin(std::string url);
  // How people sign in here now: none, link, proxy (links are good then, too). Any thread.
  const char* sign_in_way() const;

  // Of a POST: what is wrong with it, as far as can be known at once. Nothing: act() has the
  // answer. Any thread.
  std::optional<HttpResponse> refuse(const HttpRequest& request);
  // Waits for the daemon. One at a time.
  HttpResponse act(const HttpRequest& request);

  // Where only those who are signed in see the page (PageLevel::kSignedIn): as refuse(), of a GET.
  // Nothing: ask admit().
  std::optional<HttpResponse> refuse_reader(const HttpRequest& request);
  // Nothing: the daemon says that the session is good. Waits for it, on another thread than act().
  std::optional<HttpResponse> admit(const HttpRequest& request);

 private:
  using Clock = std::chrono::steady_clock;
  // To the daemon, of one thread.
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
  Line actor_{location_}, reader_{location_};  // act()'s, and admit()'s
  std::mutex signing_in_;                      // by the proxy: one at a time
  mutable std::mutex mutex_;                   // guards what follows
  std::condition_variable wake_;
  bool open_ = false, over_ = false;
  KnownSessions sessions_;
  std::map<std::string, std::string> by_proxy_;  // tokens by the names that the proxy uses
  std::thread thread_;
};

}  // namespace gpurota::web
