#include "daemon/control/control_server.h"

#include "base/log.h"
#include "base/memory_reserve.h"
#include "daemon/control/control_connection.h"
#include "daemon/control/memory_shortage.h"
#include "daemon/control/wire_reason.h"
#include "ipc/packet.h"
#include "proto/methods.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

// Messages that answer no call are queued only while a client's unread output is less than this.
// Beyond that, only the newest such message is kept.
constexpr std::size_t kMostNews = std::size_t{64} << 10;

bool is_read_only(const proto::Call& call) {
  return std::visit([](const auto& params) { return params.kReadOnly; }, call.params);
}

// The answer for a change that is in effect but may not be on the disk. The change is lost only if
// the machine loses power.
std::string not_durable(const Error& why) {
  return proto::error_json(
      proto::wire_error(Error(why).context("this was done, but may not be stored")));
}

std::uint64_t made(const ports::Durability* durability) {
  return durability ? durability->made() : 0;
}

// Sends a new client an error, as the answer to the call that it is about to send.
void turn_away(const Fd& fd, const Error& why) {
  const std::string text = proto::error_json(proto::wire_error(why));
  (void)ipc::send_some(fd.get(), {text.c_str(), text.size() + 1});
}

// Whether the call waits for the store: calls that may change it, and Report, which reads it. Calls
// without a reply (oneway) may wait as well.
bool must_wait(const proto::Call& call, const ports::Durability* durability) {
  if (!durability || durability->is_open()) return false;
  return !is_read_only(call) || std::holds_alternative<proto::Report>(call.params);
}

// Asks the loop for the events that the connection can use now.
void watch(ControlConnection& connection) {
  if (!connection.source) return;
  connection.source->set_writable(connection.blocked);
  const bool waits = connection.postponed || connection.long_answer || connection.on_worker ||
                     !connection.unsaid.empty();
  connection.source->set_readable(!connection.blocked && !connection.queued &&
                                  !connection.held_back && !waits);
}

}  // namespace

ControlServer::ControlServer(Parts parts)
    : parts_(std::move(parts)),
      dispatcher_(parts_.loop, *this),
      repeated_calls_(
          parts_.loop,
          [this](const Connection* key) -> Connection* {
            const auto it = connections_.find(key);
            return it == connections_.end() ? nullptr : it->second.get();
          },
          [this](Connection& connection) { go_on(connection); }),
      worker_answers_(parts_.loop,
                      [this](Connection& connection, const std::string& reply) {
                        answer(connection, reply);
                        go_on(connection);
                      }),
      acceptor_(parts_.loop, {"client", [this] { return parts_.config.max_connections_per_user; },
                              [this](uid_t uid) {
                                return std::count_if(
                                    connections_.begin(), connections_.end(),
                                    [&](const auto& c) { return c.second->caller.uid == uid; });
                              },
                              parts_.budgets,
                              [this](Fd fd, const ipc::Peer& peer, UserBudgets::Held held) {
                                welcome(std::move(fd), peer, std::move(held));
                              },
                              turn_away}),
      bounds_({parts_.loop, parts_.budgets, connections_,
               [this](const Connection& connection) { resume_soon(connection); }}) {}
ControlServer::~ControlServer() = default;

Result<void> ControlServer::listen(CallHandler& calls, const std::string& path,
                                   const ipc::ListenOptions& options) {
  calls_ = &calls;
  GPUROTA_TRY(dispatcher_.start());
  return acceptor_.listen(path, options);
}

bool ControlServer::finish() {
  acceptor_.close();
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
    const Connection& connection = *entry.second;
    return connection.queued || connection.postponed || connection.long_answer ||
           connection.on_worker || !connection.unsaid.empty() || !connection.out.empty();
  });
}

void ControlServer::welcome(Fd fd, const ipc::Peer& peer, UserBudgets::Held descriptor) {
  auto connection = std::make_unique<Connection>();
  connection->descriptor = std::move(descriptor);
  connection->fd = std::move(fd);
  connection->caller = {peer.process, peer.uid};
  Connection& added = *connection;
  auto source = parts_.loop.watch_fd(added.fd.get(), false, ports::Urgency::kClient,
                                     [this, &added](unsigned events) { on_ready(added, events); });
  if (!source) return;
  calls_->greet(peer.uid, peer.groups);
  added.source = std::move(*source);
  connections_.emplace(&added, std::move(connection));
}

void ControlServer::on_ready(Connection& connection, unsigned events) {
  const bool gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (events & EPOLLOUT) flush(connection);
  if (gone) end_long_answer(connection);
  if (gone && connection.blocked) connection.broken = true;  // nobody is left to read the answers
  if (gone && (connection.queued || connection.postponed || connection.held_back)) {
    // Calls that the client sent before it left are carried out, in their turn. Stop watching the
    // socket, as the hangup would be reported repeatedly until then.
    connection.hung_up = true;
    connection.source.reset();
    return;
  }
  if (!connection.broken && !connection.blocked && (gone || (events & EPOLLIN))) read(connection);
  go_on(connection);
}

// After a change of the connection: its next call may now be served, or the connection ends.
void ControlServer::go_on(Connection& connection) {
  if (connection.broken) return close(connection);
  enqueue(connection);
  if (connection.hung_up && !connection.queued && !connection.postponed) {
    read(connection);
    enqueue(connection);
    if (!connection.queued && !connection.held_back) return close(connection);
  }
  watch(connection);
}

void ControlServer::enqueue(Connection& connection) {
  const bool may = !connection.broken && !connection.blocked && !connection.held &&
                   !connection.waits && connection.unsaid.empty();
  if (connection.queued || !may || !has_work(connection) || bounds_.holds_back(connection)) return;
  connection.queued = true;
  dispatcher_.add(connection.caller.uid, &connection);
}

void ControlServer::serve(const Connection* const& key) {
  Connection& connection = *connections_.at(key);
  connection.queued = false;
  if (!bounds_.holds_back(connection)) serve_one(connection);
}

void ControlServer::on_charged(const Connection* const& key) { go_on(*connections_.at(key)); }

void ControlServer::read(Connection& connection) {
  std::array<std::byte, 16384> buffer;
  const auto received = ipc::receive_packet(connection.fd.get(), buffer, 0);
  if (received && received->state == ipc::IoState::kWouldBlock) return;
  if (!received || received->state == ipc::IoState::kClosed) {
    connection.broken = true;
    return;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(buffer.data()), received->size);
  // While a lease is held, later calls wait in the buffer, which is bounded.
  if (!connection.in.feed(bytes) || connection.in.buffered() > 2 * proto::kMaxCallBytes) {
    log::warn("a call is too long, closing the connection", {{"uid", connection.caller.uid}});
    connection.broken = true;
  } else if (!bounds_.count_unserved(connection)) {
    log::warn("too many calls of a user wait to be served, closing a connection",
              {{"uid", connection.caller.uid}});
    connection.broken = true;
  }
}

void ControlServer::serve_one(Connection& connection) {
  if (connection.stream) return go_on_streaming(connection);
  if (connection.long_answer) return go_on_answering(connection);
  if (const auto waited = std::exchange(connection.postponed, std::nullopt)) {
    return do_call(connection, *waited);
  }
  const auto text = connection.in.next();
  (void)bounds_.count_unserved(connection);
  if (!text) return;
  const auto call = parse_within_memory(*text);
  if (!call) {
    if (!call.error().oneway) answer(connection, proto::error_json(call.error().error));
    return;
  }
  connection.called = parts_.loop.now();
  connection.changed_upto = 0;
  if (must_wait(*call, parts_.durability)) {
    connection.postponed = *call;
  } else {
    do_call(connection, *call);
  }
}

bool ControlServer::has_work(const Connection& connection) const {
  if (connection.on_worker) return false;
  if (connection.stream) return !connection.stream_waits;
  const bool open = !parts_.durability || parts_.durability->is_open();
  if (connection.long_answer) {
    return (open || !connection.long_answer->reads_store()) && long_answers_.is_first(connection);
  }
  if (connection.postponed) return open && !connection.waits_to_repeat;
  return connection.in.has_next();
}

void ControlServer::go_on_streaming(Connection& connection) {
  const auto message = connection.stream->next();
  if (message) answer(connection, *message);
  connection.stream_waits = !message;
  if (connection.stream->over()) connection.stream.reset();
}

void ControlServer::go_on_answering(Connection& connection) {
  const auto message = connection.long_answer->go_on();
  if (!message) return;
  end_long_answer(connection);
  answer(connection, *message);
}

void ControlServer::end_long_answer(Connection& connection) {
  if (const Connection* const next = long_answers_.end(connection)) resume_soon(*next);
}

void ControlServer::do_call(Connection& connection, const proto::Call& call) {
  // A call begins only while the memory reserve is complete, so that memory lasts until the call's
  // end.
  if (!memory_reserve::fill()) {
    if (!call.oneway) answer(connection, proto::error_json(no_memory()));
    return;
  }
  const std::uint64_t before = made(parts_.durability);
  const bool may_wait = parts_.loop.now() < connection.called + parts_.config.watch_period;
  connection.caller.may_wait_since = may_wait ? std::optional(connection.called) : std::nullopt;
  const auto serve = [&] { return calls_->call(connection.caller, call); };
  const Outcome outcome = is_read_only(call) ? read_within_memory(serve) : serve();
  if (outcome.again_after == CallEvent::kSample) {
    return repeated_calls_.wait(connection, call, CallEvent::kSample,
                                connection.called + parts_.config.watch_period);
  }
  if (made(parts_.durability) != before) connection.changed_upto = made(parts_.durability);
  if (outcome.acquired) connection.acquired = outcome.acquired;
  if (outcome.started && outcome.started == connection.acquired) connection.acquired.reset();
  if (outcome.again_after) return repeated_calls_.wait(connection, call, *outcome.again_after);
  if (outcome.held && call.more) connection.held = outcome.held;
  if (outcome.waits) connection.waits = outcome.waits;
  if (outcome.stream && call.more && !call.oneway) {
    connection.stream = outcome.stream;
    return;
  }
  if (outcome.long_answer) {
    if (call.oneway || connection.hung_up) return;
    return long_answers_.begin(connection, outcome.long_answer);
  }
  if (outcome.on_worker) {
    if (call.oneway || connection.hung_up) return;
    if (worker_answers_.begin(connection, outcome.on_worker)) return;
    const Error error{Code::kUnavailable, 0, "logs are being read for too many users; try again"};
    return answer(connection, proto::error_json(proto::wire_error(error)));
  }
  // The reply is empty if the client waits and is answered later.
  const std::string& reply = outcome.shared ? *outcome.shared : outcome.answer;
  if (call.oneway || reply.empty()) return;
  if (is_read_only(call)) return answer(connection, reply);
  answer_durably(connection, reply, connection.changed_upto);
}

void ControlServer::answer(Connection& connection, const std::string& message) {
  if (connection.unsaid.empty()) return send(connection, message);
  connection.unsaid.push_back({connection.unsaid.back().upto, message});
}

void ControlServer::answer_durably(Connection& connection, const std::string& message,
                                   std::uint64_t upto) {
  if (!parts_.durability || upto <= parts_.durability->told()) return answer(connection, message);
  connection.unsaid.push_back({upto, message});
}

void ControlServer::on_durability(const ports::Durability::News& news) {
  std::vector<const Connection*> waiting;
  for (const auto& [key, connection] : connections_) {
    const bool waits = connection->postponed || connection->long_answer;
    if (waits || !connection->unsaid.empty()) waiting.push_back(key);
  }
  for (const Connection* key : waiting) {
    const auto it = connections_.find(key);
    if (it == connections_.end()) continue;
    Connection& connection = *it->second;
    while (!connection.unsaid.empty() && connection.unsaid.front().upto <= news.upto) {
      const std::string message = std::move(connection.unsaid.front().message);
      connection.unsaid.pop_front();
      const bool refused = !proto::error_word(message).empty();
      send(connection, news.error && !refused ? not_durable(*news.error) : message);
    }
    tell_newest(connection);
    resume(key);
  }
}

void ControlServer::send(Connection& connection, const std::string& message) {
  // A message ends with a NUL, so send the NUL at the end of the string, too.
  std::string_view rest(message.c_str(), message.size() + 1);
  if (connection.out.empty()) {
    // Write to the socket at once, and keep only what does not fit there.
    const auto sent = ipc::send_some(connection.fd.get(), rest);
    connection.broken |= !sent || sent->state == ipc::IoState::kClosed;
    if (connection.broken) return;
    rest.remove_prefix(sent->size);
    if (rest.empty()) return;
  }
  if (!connection.out.append(rest)) {
    log::warn("a client does not read, closing the connection", {{"uid", connection.caller.uid}});
    connection.broken = true;
    return;
  }
  flush(connection);
}

void ControlServer::flush(Connection& connection) {
  while (!connection.out.empty()) {
    const std::string_view pending = connection.out.pending();
    const auto sent = ipc::send_some(connection.fd.get(), pending);
    if (!sent || sent->state == ipc::IoState::kClosed) {
      connection.broken = true;
      return;
    }
    connection.out.consume(sent->size);
    if (sent->size > 0) connection.read_at = parts_.loop.now();
    if (sent->state == ipc::IoState::kWouldBlock) break;
  }
  tell_newest(connection);
  bounds_.count(connection);
  // Nothing is read from a client until it has read its answers.
  const bool blocked = !connection.out.empty();
  if (connection.blocked == blocked) return;
  connection.blocked = blocked;
  watch(connection);
}

void ControlServer::tell_newest(Connection& connection) {
  if (connection.newest.empty() || !connection.out.empty() || !connection.unsaid.empty()) return;
  send(connection, std::exchange(connection.newest, {}));
}

void ControlServer::tell(Connection& connection, std::string message) {
  const std::size_t kept = connection.out.pending().size();
  const uid_t user = connection.caller.uid;
  const bool keeps_up =
      kept == 0 || (kept < kMostNews && !parts_.budgets.is_used_up(user, Budget::kUnread));
  if (keeps_up && connection.unsaid.empty()) return answer(connection, message);
  connection.newest = std::move(message);
  bounds_.count(connection);
}

void ControlServer::tell_owner(LeaseId lease, const std::string& message) {
  for (const auto& [key, connection] : connections_) {
    if (connection->held != lease) continue;
    const std::string text = calls_->notice(connection->caller, lease, message);
    if (text.empty()) return;
    tell(*connection, text);
    if (connection->broken) {
      parts_.loop.post([this, key = key] { resume(key); });
    }
  }
}

void ControlServer::close(Connection& connection) {
  const auto acquired = connection.acquired;
  const auto waits = connection.waits;
  dispatcher_.remove(connection.caller.uid, &connection);
  end_long_answer(connection);
  const uid_t user = connection.caller.uid;
  connections_.erase(&connection);
  bounds_.on_less(user);
  if (acquired) calls_->abandon(*acquired);
  if (waits) calls_->leave(*waits);
}

void ControlServer::on_event() {
  if (news_posted_) return;
  news_posted_ = true;
  // Post the work, because this function may run inside a call. One pass then serves several
  // events.
  parts_.loop.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    news_posted_ = false;
    std::vector<const Connection*> streaming;
    for (const auto& [key, connection] : connections_) {
      if (connection->stream) streaming.push_back(key);
    }
    for (const Connection* key : streaming) {
      const auto it = connections_.find(key);
      if (it == connections_.end()) continue;
      it->second->stream_waits = false;
      resume(key);
    }
  });
}

void ControlServer::on_lease_change(const LeaseEntry& entry, bool gone) {
  for (const auto& [key, connection] : connections_) {
    if (connection->held != entry.lease.id) continue;
    tell(*connection, calls_->describe(connection->caller, entry, gone));
    if (gone) connection->held.reset();
    if (gone || connection->broken) resume_soon(*connection);
  }
}

void ControlServer::resume_soon(const Connection& connection) {
  // Post the work, because this function may run inside a call of the same connection.
  parts_.loop.post([this, key = &connection] { resume(key); });
}

void ControlServer::on_request(const QueueEntry& entry) {
  for (const auto& [key, connection] : connections_) {
    if (connection->waits != entry.id) continue;
    if (entry.asked.at_once) continue;  // wants one answer
    tell(*connection, calls_->waits(connection->caller, entry));
    if (connection->broken) resume_soon(*connection);
  }
}

void ControlServer::on_request_granted(const QueueEntry& entry, const LeaseEntry& lease) {
  for (const auto& [key, connection] : connections_) {
    if (connection->waits != entry.id) continue;
    connection->waits.reset();
    if (lease.holder) connection->acquired = lease.lease.id;
    connection->newest.clear();  // drops a message about the wait
    answer_durably(*connection, calls_->granted(connection->caller, lease),
                   made(parts_.durability));
    resume_soon(*connection);
  }
}

void ControlServer::on_request_gone(const QueueEntry& entry, const Error& why) {
  for (const auto& [key, connection] : connections_) {
    if (connection->waits != entry.id) continue;
    connection->waits.reset();
    connection->newest.clear();
    answer(*connection, proto::error_json(why.code == Code::kNoGpu
                                              ? no_gpu_error(why.message, entry.waiting.free_now,
                                                             entry.waiting.wanted, entry.reason)
                                              : proto::wire_error(why)));
    resume_soon(*connection);
  }
}

void ControlServer::resume(const Connection* key) {
  const auto it = connections_.find(key);
  if (it != connections_.end()) go_on(*it->second);
}

}  // namespace gpurota::daemon
