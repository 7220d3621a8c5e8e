// Serves HTTP to all clients, however they behave: one thread reads and writes for all of them, no
// client is waited for longer than kPatience, and when there are too many, or their unread output
// is too much, the group with most of that makes room (Visitor::group): first with the connection
// that has taken longest to send its request. A client that asks for a stream becomes a viewer;
// viewers have a number and a patience of their own. Used by gpurota-web; never interprets a path.
#pragma once

#include "base/fd.h"
#include "web/http_request.h"
#include "web/listener.h"
#include "web/stream.h"
#include "web/viewers.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

namespace gpurota::web {

class HttpServer {
 public:
  // How many there may be at a time, each with a descriptor of its own.
  struct Places {
    std::size_t connections = 256;
    std::size_t viewers = Viewers::kMost;
  };
  // As many as a process has descriptors for that may open so many, beside its own.
  static Places places_for(std::uint64_t descriptors);
  static constexpr std::chrono::milliseconds kPatience{5000};

  struct Handlers {
    // At once, on the serving thread. Nothing: ask `slow`.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> quick;
    // On a thread of its own, one at a time: what may have to wait for the daemon.
    std::function<HttpResponse(const HttpRequest&)> slow;
    // On that thread, too, every Viewers::kPeriod while somebody watches: the next event.
    std::function<std::string()> event{};
    // On another thread of its own, one at a time: what acts for somebody, which others need not
    // wait for. `quick` says that it is one.
    std::function<HttpResponse(const HttpRequest&)> act{};
    // Called with a message for the administrator: a certificate that cannot be used.
    std::function<void(const std::string&)> complain{};
  };

  // `tls`: null: without.
  static Result<std::unique_ptr<HttpServer>> make(std::vector<Listener> listeners,
                                                  Handlers handlers, Places places,
                                                  std::unique_ptr<Tls> tls = nullptr);
  ~HttpServer();

  // One round: waits until something happens, at most so long. Call it for ever.
  void serve(std::chrono::milliseconds longest = kPatience);

 private:
  using Clock = std::chrono::steady_clock;
  class Asker;  // the thread of `slow`, and that of `act`
  struct Connection {
    Stream socket;
    std::uint64_t id = 0;
    std::string peer{}, group{};
    Clock::time_point until{};
    std::string received{};
    std::string to_send{};
    bool head_only = false;
    bool asked = false;    // its request is understood
    bool acts = false;     // by `act`
    bool sending = false;  // its answer is known
    bool sent = false;     // only its hanging up is waited for
  };

  // Of answers that clients have not taken yet; the unit's MemoryMax is 64M. Short ones are always
  // sent.
  static constexpr std::size_t kMostUnsent = 16u << 20;
  static constexpr std::size_t kAlwaysSent = 4096;
  static constexpr std::uint64_t kEventId = 0;  // as if the viewers were a connection

  HttpServer(std::vector<Listener> listeners, Handlers handlers, Places places,
             std::unique_ptr<Tls> tls);
  void accept_all(const Listener& listener);
  void make_room(const std::string& group);
  void refresh_certificate();
  void read(Connection& connection);
  void answer(Connection& connection, const HttpResponse& response);
  bool has_memory(const Connection& connection, std::size_t bytes);
  void write(Connection& connection);
  void take_answers(Asker& from);
  void drop(Connection& connection);
  void make_viewer(Connection& connection, const HttpResponse& response);
  void ask_for_event();
  std::vector<pollfd> polled() const;
  std::chrono::milliseconds until_next(std::chrono::milliseconds longest) const;
  void serve_connections(std::vector<pollfd>::const_iterator results);

  std::vector<Listener> listeners_;
  Handlers handlers_;
  Places places_;
  std::unique_ptr<Tls> tls_;
  std::unique_ptr<Asker> asker_, actor_;
  std::list<Connection> connections_;  // the oldest first
  Viewers viewers_;
  std::optional<Clock::time_point> event_asked_;  // when, for the last one
  bool event_comes_ = false;                      // it is being made
  std::uint64_t last_id_ = kEventId;
};

}  // namespace gpurota::web
