// Whose message is read next: part of tenant_server.cpp. A connection that waits for its turn is not read.
#include "daemon/tenants/tenant_server_parts.h"
#include "ipc/packet.h"

#include <sys/epoll.h>

namespace gpurota::daemon {
namespace {

bool has_gone(unsigned events) { return (events & (EPOLLHUP | EPOLLERR)) != 0; }

// One that has gone would be told of again and again.
void pause(ports::EventLoop::SourcePtr& source, bool gone) {
  if (gone) source.reset();
  if (source) source->set_readable(false);
}

}  // namespace

Result<void> TenantServer::listen(const std::string& path, const ipc::ListenOptions& options) {
  GPUROTA_TRY(turns_.start());
  return doorman_.listen(path, options);
}

void TenantServer::on_session(Session& session, unsigned events) {
  if (!session.fd) return;
  if (!session.queued && turns_.turns().goes_first(session.peer.uid, parts_.loop.now())) {
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
  if (!tenant->event_queued && turns_.turns().goes_first(tenant->user, parts_.loop.now())) {
    return read_event(id);
  }
  pause(tenant->event_source, has_gone(events));
  want_turn(*tenant);
}

void TenantServer::want_turn(Session& session) {
  if (std::exchange(session.queued, true)) return;
  turns_.add(session.peer.uid, {&session, {}});
}

void TenantServer::want_turn(Tenant& tenant) {
  if (std::exchange(tenant.event_queued, true)) return;
  turns_.add(tenant.user, {nullptr, tenant.id});
}

void TenantServer::serve(const TenantTurn& turn) {
  if (turn.session) {
    serve_session(*sessions_.at(turn.session));
  } else {
    serve_event(turn.tenant);
  }
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
