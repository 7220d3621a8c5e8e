#include "daemon/tenants/tenant_sessions.h"

#include "base/log.h"
#include "base/steps.h"
#include "daemon/tenants/tenant_server.h"
#include "ipc/packet.h"
#include "ipc/unix_socket.h"

#include <algorithm>
#include <array>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

// A library sends HELLO at once. A client that takes longer than this is not libgpurota.
constexpr Duration kHelloPatience = std::chrono::seconds(10);

bool has_gone(unsigned events) { return (events & (EPOLLHUP | EPOLLERR)) != 0; }

// A hangup would be reported repeatedly, so a closed socket is not watched any more.
void pause(ports::EventLoop::SourcePtr& source, bool gone) {
  if (gone) source.reset();
  if (source) source->set_readable(false);
}

}  // namespace

TenantSessions::TenantSessions(Parts parts)
    : parts_(parts),
      dispatcher_(parts_.loop, *this),
      acceptor_(parts_.loop, {"tenant", [this] { return parts_.config.max_connections_per_user; },
                              [this](uid_t uid) {
                                return std::count_if(
                                    sessions_.begin(), sessions_.end(),
                                    [&](const auto& s) { return s.second->peer.uid == uid; });
                              },
                              parts_.budgets,
                              [this](Fd fd, ipc::Peer peer, UserBudgets::Held held) {
                                welcome(std::move(fd), std::move(peer), std::move(held));
                              }}) {
  parts_.swap.set_sessions(*this);
}
TenantSessions::~TenantSessions() = default;

Result<void> TenantSessions::listen(const std::string& path, const ipc::ListenOptions& options) {
  GPUROTA_TRY(dispatcher_.start());
  return acceptor_.listen(path, options);
}

void TenantSessions::welcome(Fd fd, ipc::Peer peer, UserBudgets::Held descriptor) {
  if (peer.process.pid == 0) return;  // a pid namespace hides the process: it cannot be followed
  auto session = std::make_unique<TenantSession>();
  TenantSession& added = *session;
  added.descriptor = std::move(descriptor);
  added.fd = std::move(fd);
  added.peer = std::move(peer);
  auto source =
      parts_.loop.watch_fd(added.fd.get(), false, ports::Urgency::kClient,
                           [this, &added](unsigned events) { on_session(added, events); });
  added.hello_deadline =
      parts_.loop.add_timer(parts_.loop.now() + kHelloPatience, ports::Urgency::kHousekeeping,
                            [this, &added] { end(added, "it did not send HELLO"); });
  if (!source) return;
  added.source = std::move(*source);
  sessions_.emplace(&added, std::move(session));
}

Result<Fd> TenantSessions::open_event_socket(Tenant& tenant) {
  GPUROTA_ASSIGN_OR_RETURN(auto pair, ipc::make_socket_pair(SOCK_SEQPACKET));
  tenant.event = std::move(pair.first);
  (void)ipc::refuse_descriptors(tenant.event.get());
  GPUROTA_ASSIGN_OR_RETURN(tenant.event_source,
                           parts_.loop.watch_fd(tenant.event.get(), false, ports::Urgency::kClient,
                                                [this, id = tenant.id](unsigned events) {
                                                  on_event_socket(id, events);
                                                }));
  return std::move(pair.second);
}

template <class Read>
bool TenantSessions::serve_at_once(uid_t user, Read read) {
  const TimePoint begun = parts_.loop.now();
  if (!dispatcher_.queue().admit_at_once(user, begun)) return false;
  steps::begin();
  read();
  steps::end();
  dispatcher_.queue().charge_at_once(user, begun, parts_.loop.now());
  return true;
}

void TenantSessions::on_session(TenantSession& session, unsigned events) {
  if (!session.fd) return;
  const auto read = [&] { read_session(session); };
  if (!session.queued && serve_at_once(session.peer.uid, read) && !session.has_question()) return;
  pause(session.source, has_gone(events));
  enqueue(session);
}

void TenantSessions::on_event_socket(TenantId id, unsigned events) {
  Tenant* const tenant = parts_.table.find(id);
  if (!tenant) return;
  if ((events & EPOLLOUT) != 0) parts_.swap.on_writable(id);
  if ((events & ~unsigned{EPOLLOUT}) == 0 || !parts_.table.find(id) || !tenant->event) return;
  if (!tenant->event_queued && serve_at_once(tenant->user, [&] { read_event(id); })) return;
  pause(tenant->event_source, has_gone(events));
  enqueue(*tenant);
}

void TenantSessions::enqueue(TenantSession& session) {
  if (std::exchange(session.queued, true)) return;
  dispatcher_.add(session.peer.uid, {&session, {}});
}

void TenantSessions::go_on_soon(TenantSession& session) {
  if (!session.fd) return;
  pause(session.source, false);
  enqueue(session);
}

void TenantSessions::enqueue(Tenant& tenant) {
  if (std::exchange(tenant.event_queued, true)) return;
  dispatcher_.add(tenant.user, {nullptr, tenant.id});
}

void TenantSessions::serve(const MessageSource& source) {
  if (source.session) {
    serve_session(*sessions_.at(source.session));
  } else {
    serve_event(source.tenant);
  }
}

void TenantSessions::serve_session(TenantSession& session) {
  session.queued = false;
  if (!session.fd) return;
  read_session(session);
  if (!session.fd) return;
  if (session.has_question()) return enqueue(session);
  if (session.source) return session.source->set_readable(true);
  enqueue(session);  // to read what the client sent before it left
}

void TenantSessions::serve_event(TenantId id) {
  Tenant* tenant = parts_.table.find(id);
  if (!tenant) return;
  tenant->event_queued = false;
  if (!tenant->event) return;
  read_event(id);
  tenant = parts_.table.find(id);
  if (!tenant || !tenant->event) return;
  if (tenant->event_source) return tenant->event_source->set_readable(true);
  enqueue(*tenant);
}

void TenantSessions::read_session(TenantSession& session) {
  if (session.has_question()) {
    if (!parts_.server.go_on(session)) end(session, kDoesNotRead);
    return;
  }
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  const auto received = ipc::receive_packet(session.fd.get(), buffer, 0);
  if (!received) return end(session, received.error().message);
  if (received->state == ipc::IoState::kWouldBlock) return;
  if (received->state == ipc::IoState::kClosed) return end(session, "");
  const auto message = parse_tenant_message(std::span(buffer).first(received->size));
  if (!message) return end(session, message.error().message);
  if (!parts_.server.on_call(session, *message)) end(session, "it broke the protocol");
}

void TenantSessions::read_event(TenantId id) {
  Tenant* const tenant = parts_.table.find(id);
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  const auto received = ipc::receive_packet(tenant->event.get(), buffer, 0);
  if (received && received->state == ipc::IoState::kWouldBlock) return;
  const auto message = received && received->state == ipc::IoState::kDone
                           ? parse_tenant_message(std::span(buffer).first(received->size))
                           : fail(Code::kGone, "");
  if (message && parts_.server.on_event(*tenant, *message)) return;
  // The library's helper thread is gone or broken: the tenant is served, but cannot be recalled.
  hang_up(id, message ? "it broke the protocol" : "");
}

TenantSessions::Sent TenantSessions::send(TenantId id, std::span<const std::byte> packet) {
  const Tenant* const tenant = parts_.table.find(id);
  if (!tenant || !tenant->event) return Sent::kGone;
  const auto sent = ipc::send_packet(tenant->event.get(), packet);
  if (!sent || *sent == ipc::IoState::kClosed) return Sent::kGone;
  return *sent == ipc::IoState::kDone ? Sent::kDone : Sent::kFull;
}

void TenantSessions::wait_writable(TenantId id, bool wait) {
  const Tenant* const tenant = parts_.table.find(id);
  if (tenant && tenant->event_source) tenant->event_source->set_writable(wait);
}

void TenantSessions::hang_up(TenantId id, const std::string& why) {
  Tenant* const tenant = parts_.table.find(id);
  if (!tenant) return;
  tenant->event_source.reset();
  tenant->event.reset();
  if (tenant->session) {
    end(*tenant->session, why);
  } else if (tenant->swap) {
    parts_.swap.on_disconnect(id);
  }
}

void TenantSessions::end(TenantSession& session, const std::string& why) {
  if (!session.fd) return;
  if (!why.empty()) {
    log::warn("tenant disconnected",
              {{"pid", session.peer.process.pid}, {"uid", session.peer.uid}, {"reason", why}});
  }
  session.source.reset();
  if (session.queued) dispatcher_.remove(session.peer.uid, {&session, {}});
  session.hello_deadline.reset();
  session.asking.reset();
  session.unanswered.reset();
  session.unsettled.reset();
  parts_.server.on_closing(session);
  session.fd.reset();
  session.descriptor.set(0);
  Ended ended{&session, {}};
  if (Tenant* const tenant = std::exchange(session.tenant, nullptr)) {
    ended.tenant = tenant->id;
    tenant->session = nullptr;
    tenant->event_source.reset();
    tenant->event.reset();
    tenant->place.event.set(0);
    tenant->awaiting.clear();
    tenant->asked.reset();
  }
  ended_.push_back(ended);
  if (ended_.size() > 1) return;
  parts_.loop.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) destroy_ended();
  });
}

void TenantSessions::destroy_ended() {
  for (const Ended& ended : std::exchange(ended_, {})) {
    sessions_.erase(ended.session);
    Tenant* const tenant = ended.tenant ? parts_.table.find(*ended.tenant) : nullptr;
    if (tenant && !tenant->session) parts_.server.on_disconnected(*tenant);
  }
}

}  // namespace gpurota::daemon
