// Serves HTTP to whoever connects, however they behave: one thread reads and writes for all of them,
// nobody is waited for longer than kPatience, and when there are too many the one that has taken longest
// to say what it wants makes way. Used by gpurota-web; never interprets a path.
#pragma once

#include "base/fd.h"
#include "web/host_check.h"
#include "web/http_request.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

namespace gpurota::web {

class HttpServer {
 public:
  static constexpr std::size_t kMostConnections = 256;
  static constexpr std::chrono::milliseconds kPatience{5000};

  struct Handlers {
    // At once, on the serving thread. Nothing: ask `slow`.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> quick;
    // On a thread of its own, one at a time: what may have to wait for the daemon.
    std::function<HttpResponse(const HttpRequest&)> slow;
  };

  static Result<std::unique_ptr<HttpServer>> listen(const ListenAddress& address,
                                                    Handlers handlers);
  ~HttpServer();

  int port() const { return port_; }
  // One round: waits until something happens, at most so long. Call it for ever.
  void serve(std::chrono::milliseconds longest = kPatience);

 private:
  using Clock = std::chrono::steady_clock;
  class Asker;  // the thread of `slow`
  struct Connection {
    Fd socket;
    std::uint64_t id = 0;
    Clock::time_point until{};
    std::string received{};
    std::string to_send{};
    bool head_only = false;
    bool asked = false;    // its request is understood
    bool sending = false;  // its answer is known
    bool sent = false;     // only its hanging up is waited for
  };

  HttpServer(Fd socket, int port, Handlers handlers);
  void accept_all();
  void read(Connection& connection);
  void answer(Connection& connection, const HttpResponse& response);
  void write(Connection& connection);
  void take_answers();
  void drop(Connection& connection);

  Fd socket_;
  int port_;
  Handlers handlers_;
  std::unique_ptr<Asker> asker_;
  std::list<Connection> connections_;  // the oldest first
  std::uint64_t last_id_ = 0;
};

}  // namespace gpurota::web
