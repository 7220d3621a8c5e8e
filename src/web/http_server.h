// Serves HTTP to all clients, however they behave. One thread reads and writes for all of them. The
// server waits for no client longer than kPatience. If there are too many clients, or too much
// unread output, the group with the most of it loses a connection (Visitor::group), first one that
// has not sent its request yet. A client that asks for a stream becomes a viewer; viewers have
// their own limits of number and time. Used by gpurota-web; never interprets a path.
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
  // The most connections and viewers at a time; each needs a descriptor.
  struct Places {
    std::size_t connections = 256;
    std::size_t viewers = Viewers::kMost;
  };
  // The places for a process that may open this many descriptors, some of which it needs for
  // itself.
  static Places places_for(std::uint64_t descriptors);
  static constexpr std::chrono::milliseconds kPatience{5000};

  struct Handlers {
    // Called on the serving thread; must return at once. nullopt: call `slow`, or `act` for a POST.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> quick;
    // Called on a thread of its own, one call at a time: for requests that may wait for the daemon.
    std::function<HttpResponse(const HttpRequest&)> slow;
    // Called on the thread of `slow`, every Viewers::kPeriod while there are viewers: the next
    // event.
    std::function<std::string()> event{};
    // Called for POST requests, which act for a user. Runs on a thread of its own, one call at a
    // time, so that other requests do not wait.
    std::function<HttpResponse(const HttpRequest&)> act{};
    // Called with a message for the administrator: a certificate is not usable.
    std::function<void(const std::string&)> complain{};
  };

  // `tls`: null: serves without TLS.
  static Result<std::unique_ptr<HttpServer>> make(std::vector<Listener> listeners,
                                                  Handlers handlers, Places places,
                                                  std::unique_ptr<Tls> tls = nullptr);
  ~HttpServer();

  // One round: waits until something happens, at most `longest`. Call it in a loop.
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
    bool asked = false;    // its request is complete
    bool acts = false;     // answered by `act`
    bool sending = false;  // its answer is known
    bool sent = false;     // it only waits for the client to close
  };

  // The most bytes of answers that clients have not read yet; the unit's MemoryMax is 64M. Short
  // answers are always sent.
  static constexpr std::size_t kMostUnsent = 16u << 20;
  static constexpr std::size_t kAlwaysSent = 4096;
  static constexpr std::uint64_t kEventId = 0;  // the viewers' id, in place of a connection's

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
  std::list<Connection> connections_;  // oldest first
  Viewers viewers_;
  std::optional<Clock::time_point> event_asked_;  // when the last event was asked for
  bool event_comes_ = false;                      // an event is being made
  std::uint64_t last_id_ = kEventId;
};

}  // namespace gpurota::web
