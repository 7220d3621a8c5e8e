#include "web/http_server.h"

#include "base/make_room.h"
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

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::web {

// A thread that may have to wait: for `slow` and `event`, or for `act`.
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

// The most pieces of one connection, or new connections, that are handled before other connections
// are served.
constexpr int kMostAtOnce = 64;

}  // namespace

HttpServer::Places HttpServer::places_for(std::uint64_t descriptors) {
  constexpr std::uint64_t kOwn = 40;  // descriptors for the daemon, listeners, files, peers
  const Places most;
  const std::uint64_t wanted = most.connections + most.viewers;
  const std::uint64_t left = std::clamp(descriptors, kOwn + 8, kOwn + wanted) - kOwn;
  return {static_cast<std::size_t>(left * most.connections / wanted),
          static_cast<std::size_t>(left * most.viewers / wanted)};
}

Result<std::unique_ptr<HttpServer>> HttpServer::make(std::vector<Listener> listeners,
                                                     Handlers handlers, Places places,
                                                     std::unique_ptr<Tls> tls) {
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::move(listeners), std::move(handlers), places, std::move(tls)));
  GPUROTA_TRY(server->asker_->begin());
  GPUROTA_TRY(server->actor_->begin());
  return server;
}

HttpServer::HttpServer(std::vector<Listener> listeners, Handlers handlers, Places places,
                       std::unique_ptr<Tls> tls)
    : listeners_(std::move(listeners)),
      handlers_(std::move(handlers)),
      places_(places),
      tls_(std::move(tls)),
      asker_(std::make_unique<Asker>([this](std::uint64_t id, const HttpRequest& request) {
        return id == kEventId ? HttpResponse{200, handlers_.event()} : handlers_.slow(request);
      })),
      actor_(std::make_unique<Asker>(
          [this](std::uint64_t, const HttpRequest& request) { return handlers_.act(request); })),
      viewers_(places.viewers) {}

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

// Drops a connection of the group with the most: one that has not sent its request yet, else the
// oldest.
void HttpServer::make_room(const std::string& group) {
  const auto owner_of = [](const Connection& each) { return each.group; };
  const std::string who = who_makes_room(connections_, owner_of, group);
  const auto is_theirs = [&](const Connection& each) { return each.group == who; };
  auto gone = std::find_if(connections_.begin(), connections_.end(),
                           [&](const Connection& each) { return is_theirs(each) && !each.asked; });
  if (gone == connections_.end()) {
    gone = std::find_if(connections_.begin(), connections_.end(), is_theirs);
  }
  // No other group has more than one connection, and the client's own group has none: drop the
  // oldest connection.
  if (gone == connections_.end()) gone = connections_.begin();
  drop(*gone);
  connections_.erase(gone);
}

void HttpServer::accept_all(const Listener& listener) {
  refresh_certificate();
  for (int made = 0; made < kMostAtOnce; ++made) {
    auto visitor = accept_visitor(listener);
    if (!visitor) return;
    if (connections_.size() >= places_.connections) make_room(visitor->group);
    Connection& newest = connections_.emplace_back();
    auto tls = tls_ ? tls_->accept(visitor->socket.get()) : nullptr;
    if (tls_ && !tls) {
      connections_.pop_back();
      return;
    }
    newest.socket = Stream(std::move(visitor->socket), std::move(tls));
    newest.id = ++last_id_;
    newest.peer = std::move(visitor->address);
    newest.group = std::move(visitor->group);
    newest.until = Clock::now() + kPatience;
    // Serve a client whose whole request has already arrived, before newer clients can push it out.
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
    if (connection.asked) {  // ignore what follows the request
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
  if (viewers_.is_empty()) event_asked_.reset();  // do not make the first viewer wait
  viewers_.add(std::exchange(connection.socket, {}), connection.group,
               response_text(response, false), Clock::now());
}

void HttpServer::ask_for_event() {
  const bool is_time = !event_asked_ || Clock::now() - *event_asked_ >= Viewers::kPeriod;
  if (viewers_.is_empty() || event_comes_ || !is_time) return;
  event_comes_ = true;
  event_asked_ = Clock::now();
  asker_->ask(kEventId, {});
}

void HttpServer::answer(Connection& connection, const HttpResponse& response) {
  if (response.is_stream && !viewers_.has_room(connection.group)) {
    return answer(connection,
                  {503, fmt::format("{} viewers watch already, and of no address more: try again "
                                    "later, or ask for /api/now\n",
                                    Viewers::kMost)});
  }
  if (response.is_stream && !connection.head_only) return make_viewer(connection, response);
  if (!has_memory(connection, response.body.size())) {
    return answer(connection, {503, "too many answers wait to be read: try again in a moment\n"});
  }
  connection.to_send = response_text(response, connection.head_only);
  connection.sending = true;
  connection.until = Clock::now() + kPatience;
  write(connection);
}

// Whether `connection` may have `bytes` of memory for output. The group that uses the most memory
// gets no more; a group that uses more than the caller's loses its largest unread output.
bool HttpServer::has_memory(const Connection& connection, std::size_t bytes) {
  if (bytes <= kAlwaysSent) return true;
  for (;;) {
    std::size_t all = bytes;
    std::map<std::string, std::size_t> unsent;
    for (const Connection& each : connections_) {
      all += each.to_send.size();
      unsent[each.group] += each.to_send.size();
    }
    if (all <= kMostUnsent) return true;
    const std::size_t own = unsent[connection.group] + bytes;
    const auto most =
        std::max_element(unsent.begin(), unsent.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most->second <= own) return false;
    const auto largest = std::max_element(
        connections_.begin(), connections_.end(), [&](const Connection& a, const Connection& b) {
          const auto size = [&](const Connection& each) {
            return each.group == most->first ? each.to_send.size() : 0;
          };
          return size(a) < size(b);
        });
    largest->to_send.clear();
    drop(*largest);
  }
}

void HttpServer::write(Connection& connection) {
  while (!connection.to_send.empty()) {
    const ssize_t sent = connection.socket.send(connection.to_send);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return drop(connection);
    connection.to_send.erase(0, static_cast<std::size_t>(sent));
  }
  // Closing with unread input would discard the answer.
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

// The descriptors to poll: asker, actor, listening sockets, connections, viewers.
std::vector<pollfd> HttpServer::polled() const {
  std::vector<pollfd> polled = {{asker_->fd(), POLLIN, 0}, {actor_->fd(), POLLIN, 0}};
  for (const Listener& each : listeners_) polled.push_back({each.socket.get(), POLLIN, 0});
  for (const Connection& each : connections_) {
    // While the answer is being made, poll the connection only for a hangup.
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
    if (seen == 0 || !each.socket) continue;
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
  constexpr std::size_t kFirstListener = 2;
  const auto first = static_cast<std::ptrdiff_t>(kFirstListener + listeners_.size());
  const auto first_viewer = first + static_cast<std::ptrdiff_t>(connections_.size());
  // The viewers first, because a connection may become a viewer.
  viewers_.on_polled(polled.cbegin() + first_viewer, Clock::now());
  serve_connections(polled.cbegin() + first);
  if (polled[0].revents != 0) take_answers(*asker_);
  if (polled[1].revents != 0) take_answers(*actor_);
  const auto now = Clock::now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (at->socket && now >= at->until) drop(*at);
    at = at->socket ? std::next(at) : connections_.erase(at);
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (polled[kFirstListener + i].revents != 0) accept_all(listeners_[i]);
  }
}

}  // namespace gpurota::web
