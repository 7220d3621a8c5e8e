// Whose message is read next: part of tenant_server.cpp. A connection that waits for its turn is not read.
#include "daemon/tenants/tenant_server_parts.h"
#include "ipc/packet.h"

#include <array>
#include <cerrno>
#include <cstdint>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

// So long, or so many, are served at once; then the loop looks after everything else.
constexpr Duration kSlice = std::chrono::microseconds(500);
constexpr int kMostInASlice = 64;

bool has_gone(unsigned events) { return (events & (EPOLLHUP | EPOLLERR)) != 0; }

// One that has gone would be told of again and again.
void pause(ports::EventLoop::SourcePtr& source, bool gone) {
  if (gone) source.reset();
  if (source) source->set_readable(false);
}

}  // namespace

Result<void> TenantServer::listen(const std::string& path, const ipc::ListenOptions& options) {
  turns_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!turns_wake_) return fail_errno("cannot make an eventfd", errno);
  GPUROTA_ASSIGN_OR_RETURN(turns_source_,
                           parts_.loop.watch_fd(turns_wake_.get(), false, ports::Urgency::kClient,
                                                [this](unsigned) { serve_turns(); }));
  return doorman_.listen(path, options);
}

void TenantServer::on_session(Session& session, unsigned events) {
  if (!session.fd) return;
  if (!session.queued && turns_.goes_first(session.peer.uid, parts_.loop.now())) {
    return read_session(session);
  }
  pause(session.source, has_gone(events));
  want_turn(session);
}

void TenantServer::on_event_socket(TenantId id, unsigned events) {
  Tenant* const tenant = find(id);
  if (!tenant) return;
  if ((events & EPOLLOUT) != 0) parts_.swap.on_writable(id);
  if ((events & ~unsigned{EPOLLOUT}) == 0 || !find(id) || !tenant->event) return;
  if (!tenant->event_queued && turns_.goes_first(tenant->user, parts_.loop.now())) {
    return read_event(id);
  }
  pause(tenant->event_source, has_gone(events));
  want_turn(*tenant);
}

void TenantServer::want_turn(Session& session) {
  if (std::exchange(session.queued, true)) return;
  add_turn(session.peer.uid, {&session, {}});
}

void TenantServer::want_turn(Tenant& tenant) {
  if (std::exchange(tenant.event_queued, true)) return;
  add_turn(tenant.user, {nullptr, tenant.id});
}

void TenantServer::add_turn(uid_t user, Turn turn) {
  const std::uint64_t one = 1;
  if (turns_.empty()) (void)!::write(turns_wake_.get(), &one, sizeof one);
  turns_.add(user, turn);
}

// Called back for as long as somebody waits.
void TenantServer::serve_turns() {
  const TimePoint begun = parts_.loop.now();
  TimePoint at = begun;
  for (int served = 0; served < kMostInASlice && at - begun < kSlice; ++served) {
    const auto turn = turns_.next();
    if (!turn) break;
    if (turn->key.session) {
      serve_session(*sessions_.at(turn->key.session));
    } else {
      serve_event(turn->key.tenant);
    }
    const TimePoint done = parts_.loop.now();
    turns_.charge(turn->user, done - at);
    at = done;
  }
  std::uint64_t count = 0;
  if (turns_.empty()) (void)!::read(turns_wake_.get(), &count, sizeof count);
}

void TenantServer::serve_session(Session& session) {
  session.queued = false;
  if (!session.fd) return;
  read_session(session);
  if (!session.fd) return;
  if (session.source) return session.source->set_readable(true);
  want_turn(session);  // what it sent before it left
}

void TenantServer::serve_event(TenantId id) {
  Tenant* tenant = find(id);
  if (!tenant) return;
  tenant->event_queued = false;
  if (!tenant->event) return;
  read_event(id);
  tenant = find(id);
  if (!tenant || !tenant->event) return;
  if (tenant->event_source) return tenant->event_source->set_readable(true);
  want_turn(*tenant);
}

}  // namespace gpurota::daemon
