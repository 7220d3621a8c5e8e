#include "web/http_server.h"

#include "base/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::web {

// The one thread that may have to wait.
class HttpServer::Asker {
 public:
  using Ask = std::function<HttpResponse(std::uint64_t id, const HttpRequest&)>;
  explicit Asker(Ask ask)
      : ask_(std::move(ask)), answered_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Asker() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> begin() {
    if (!answered_) return fail_errno("cannot make an eventfd", errno);
    GPUROTA_ASSIGN_OR_RETURN(thread_, start_thread([this] { run(); }));
    return {};
  }

  int fd() const { return answered_.get(); }
  void ask(std::uint64_t id, HttpRequest request) {
    {
      const std::lock_guard lock(mutex_);
      asked_.emplace_back(id, std::move(request));
    }
    wake_.notify_one();
  }
  void forget(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    asked_.erase(std::remove_if(asked_.begin(), asked_.end(),
                                [id](const auto& each) { return each.first == id; }),
                 asked_.end());
  }
  std::map<std::uint64_t, HttpResponse> take() {
    std::uint64_t count = 0;
    (void)!::read(fd(), &count, sizeof count);
    const std::lock_guard lock(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return over_ || !asked_.empty(); });
      if (over_) return;
      const auto [id, request] = std::move(asked_.front());
      asked_.pop_front();
      lock.unlock();
      HttpResponse response = ask_(id, request);
      lock.lock();
      answers_.emplace(id, std::move(response));
      const std::uint64_t one = 1;
      (void)!::write(fd(), &one, sizeof one);
    }
  }

  Ask ask_;
  Fd answered_;
  std::mutex mutex_;  // guards all but ask_ and answered_
  std::condition_variable wake_;
  std::deque<std::pair<std::uint64_t, HttpRequest>> asked_;
  std::map<std::uint64_t, HttpResponse> answers_;
  bool over_ = false;
  std::thread thread_;
};

namespace {

// Pieces of one connection, and new connections: then it is the others' turn.
constexpr int kMostAtOnce = 64;

union Address {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
};

socklen_t fill(Address& to, const ListenAddress& from) {
  const auto port = htons(static_cast<std::uint16_t>(from.port));
  to = {};
  if (::inet_pton(AF_INET, from.host.c_str(), &to.four.sin_addr) == 1) {
    to.four.sin_family = AF_INET;
    to.four.sin_port = port;
    return sizeof to.four;
  }
  to = {};
  (void)::inet_pton(AF_INET6, from.host.c_str(), &to.six.sin6_addr);
  to.six.sin6_family = AF_INET6;
  to.six.sin6_port = port;
  return sizeof to.six;
}

// An address of IPv4 that came by a socket of IPv6 is one of IPv4.
std::string text_of(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool four = address.any.sa_family == AF_INET;
  const void* const bytes = four ? static_cast<const void*>(&address.four.sin_addr)
                                 : static_cast<const void*>(&address.six.sin6_addr);
  if (!::inet_ntop(address.any.sa_family, bytes, text.data(), text.size())) return "";
  const std::string found = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  return found.starts_with(kMapped) && found.find('.') != found.npos ? found.substr(kMapped.size())
                                                                     : found;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const ListenAddress& where,
                                                       Handlers handlers,
                                                       std::unique_ptr<Tls> tls) {
  Address address;
  const socklen_t size = fill(address, where);
  Fd socket(::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("cannot make a socket", errno);
  // Not SO_REUSEPORT: a second one would share the port, and so could a stranger.
  const int yes = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), &address.any, size) != 0 || ::listen(socket.get(), 128) != 0) {
    return fail_errno(fmt::format("cannot listen on {} port {}", where.host, where.port), errno);
  }
  socklen_t told = sizeof address;
  (void)::getsockname(socket.get(), &address.any, &told);
  const int port =
      ntohs(address.any.sa_family == AF_INET ? address.four.sin_port : address.six.sin6_port);
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::move(socket), port, std::move(handlers), std::move(tls)));
  GPUROTA_TRY(server->asker_->begin());
  GPUROTA_TRY(server->actor_->begin());
  return server;
}

HttpServer::HttpServer(Fd socket, int port, Handlers handlers, std::unique_ptr<Tls> tls)
    : socket_(std::move(socket)),
      port_(port),
      handlers_(std::move(handlers)),
      tls_(std::move(tls)),
      asker_(std::make_unique<Asker>([this](std::uint64_t id, const HttpRequest& request) {
        return id == kEventId ? HttpResponse{200, handlers_.event()} : handlers_.slow(request);
      })),
      actor_(std::make_unique<Asker>(
          [this](std::uint64_t, const HttpRequest& request) { return handlers_.act(request); })) {}

HttpServer::~HttpServer() = default;

void HttpServer::drop(Connection& connection) {
  if (connection.asked && !connection.sending) {
    (connection.acts ? actor_ : asker_)->forget(connection.id);
  }
  connection.socket.reset();
}

void HttpServer::refresh_certificate() {
  if (!tls_) return;
  const auto refreshed = tls_->refresh(Clock::now());
  if (refreshed) return;
  if (handlers_.complain) {
    handlers_.complain(refreshed.error().message + "; the last ones are used on");
  }
}

void HttpServer::accept_all() {
  refresh_certificate();
  for (int made = 0; made < kMostAtOnce; ++made) {
    Address address{};
    socklen_t size = sizeof address;
    Fd socket(::accept4(socket_.get(), &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (connections_.size() >= kMostConnections) {
      const auto slow = std::find_if(connections_.begin(), connections_.end(),
                                     [](const Connection& each) { return !each.asked; });
      const auto makes_way = slow == connections_.end() ? connections_.begin() : slow;
      drop(*makes_way);
      connections_.erase(makes_way);
    }
    Connection& newest = connections_.emplace_back();
    auto tls = tls_ ? tls_->accept(socket.get()) : nullptr;
    if (tls_ && !tls) {
      connections_.pop_back();
      return;
    }
    newest.socket = Stream(std::move(socket), std::move(tls));
    newest.id = ++last_id_;
    newest.peer = text_of(address);
    newest.until = Clock::now() + kPatience;
    // Who has said all by now need not fear those who come next.
    read(newest);
    if (!newest.socket) connections_.pop_back();
  }
}

void HttpServer::read(Connection& connection) {
  std::array<char, 4096> piece{};
  for (int pieces = 0; pieces < kMostAtOnce; ++pieces) {
    const ssize_t got = connection.socket.receive(piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return drop(connection);
    if (connection.asked) {  // what comes behind a request is nobody's business
      if (connection.sent) continue;
      return;
    }
    connection.received.append(piece.data(), static_cast<std::size_t>(got));
    auto request = parse_request(connection.received);
    if (!request) continue;
    connection.asked = true;
    connection.received = {};
    if (!*request) return answer(connection, {400, request->error().message + "\n"});
    connection.head_only = (*request)->method == "HEAD";
    (*request)->peer = connection.peer;
    if (const auto response = handlers_.quick(**request)) return answer(connection, *response);
    connection.until = Clock::now() + 2 * kPatience;
    connection.acts = (*request)->is_post();
    return (connection.acts ? actor_ : asker_)->ask(connection.id, std::move(**request));
  }
}

void HttpServer::make_viewer(Connection& connection, const HttpResponse& response) {
  if (viewers_.is_empty()) event_asked_.reset();  // the first one need not wait
  viewers_.add(std::exchange(connection.socket, {}), response_text(response, false), Clock::now());
}

void HttpServer::ask_for_event() {
  const bool is_time = !event_asked_ || Clock::now() - *event_asked_ >= Viewers::kPeriod;
  if (viewers_.is_empty() || event_comes_ || !is_time) return;
  event_comes_ = true;
  event_asked_ = Clock::now();
  asker_->ask(kEventId, {});
}

void HttpServer::answer(Connection& connection, const HttpResponse& response) {
  if (response.is_stream && viewers_.is_full()) {
    return answer(connection,
                  {503, fmt::format("{} viewers watch already, and there may be no more: try again "
                                    "later, or ask for /api/now\n",
                                    Viewers::kMost)});
  }
  if (response.is_stream && !connection.head_only) return make_viewer(connection, response);
  if (response.body.size() > kAlwaysSent && unsent() + response.body.size() > kMostUnsent) {
    return answer(connection, {503, "too many answers wait to be read: try again in a moment\n"});
  }
  connection.to_send = response_text(response, connection.head_only);
  connection.sending = true;
  connection.until = Clock::now() + kPatience;
  write(connection);
}

std::size_t HttpServer::unsent() const {
  std::size_t bytes = 0;
  for (const Connection& each : connections_) bytes += each.to_send.size();
  return bytes;
}

void HttpServer::write(Connection& connection) {
  while (!connection.to_send.empty()) {
    const ssize_t sent = connection.socket.send(connection.to_send);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return drop(connection);
    connection.to_send.erase(0, static_cast<std::size_t>(sent));
  }
  // Closing with something unread would take the answer back.
  connection.sent = true;
  connection.socket.finish();
  read(connection);
}

void HttpServer::take_answers(Asker& from) {
  for (const auto& [id, response] : from.take()) {
    if (id == kEventId) {
      event_comes_ = false;
      viewers_.show(response.body, Clock::now());
      continue;
    }
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [id = id](const Connection& each) { return each.id == id; });
    if (at != connections_.end()) answer(*at, response);
  }
}

// The listening socket, the asker, the actor, the connections, the viewers.
std::vector<pollfd> HttpServer::polled() const {
  std::vector<pollfd> polled = {
      {socket_.get(), POLLIN, 0}, {asker_->fd(), POLLIN, 0}, {actor_->fd(), POLLIN, 0}};
  for (const Connection& each : connections_) {
    // One whose answer is still being found is only asked whether it has hung up.
    const bool waits = each.asked && !each.sending;
    const bool writes = each.sending && !each.sent;
    const short events = waits ? 0 : writes ? POLLOUT : each.socket.reads_by();
    polled.push_back({each.socket.fd(), events, 0});
  }
  viewers_.add_polled(polled);
  return polled;
}

std::chrono::milliseconds HttpServer::until_next(std::chrono::milliseconds longest) const {
  Clock::time_point next = std::min(Clock::now() + longest, viewers_.next_deadline());
  for (const Connection& each : connections_) next = std::min(next, each.until);
  if (!viewers_.is_empty() && !event_comes_ && event_asked_) {
    next = std::min(next, *event_asked_ + Viewers::kPeriod);
  }
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()),
                  std::chrono::milliseconds(0));
}

void HttpServer::serve_connections(std::vector<pollfd>::const_iterator results) {
  for (Connection& each : connections_) {
    const short seen = (results++)->revents;
    if (seen == 0) continue;
    const bool waits = each.asked && !each.sending;
    if (waits) {
      if ((seen & (POLLERR | POLLHUP)) != 0) drop(each);
    } else if (each.sending && !each.sent) {
      write(each);
    } else {
      read(each);
    }
  }
}

void HttpServer::serve(std::chrono::milliseconds longest) {
  ask_for_event();
  std::vector<pollfd> polled = this->polled();
  const auto wait = static_cast<int>(until_next(longest).count());
  if (::poll(polled.data(), polled.size(), wait) < 0) return;
  constexpr std::ptrdiff_t kFirst = 3;
  const auto first_viewer = kFirst + static_cast<std::ptrdiff_t>(connections_.size());
  // The viewers first: a connection may become one.
  viewers_.on_polled(polled.cbegin() + first_viewer, Clock::now());
  serve_connections(polled.cbegin() + kFirst);
  if (polled[1].revents != 0) take_answers(*asker_);
  if (polled[2].revents != 0) take_answers(*actor_);
  const auto now = Clock::now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (at->socket && now >= at->until) drop(*at);
    at = at->socket ? std::next(at) : connections_.erase(at);
  }
  if (polled[0].revents != 0) accept_all();
}

}  // namespace gpurota::web
