// The sockets of tenants: accepts connections, chooses which message is read next, and ends
// connections. State thread only.
//
// A tenant has two sockets: CALL for its requests, and an event socket for the daemon's messages
// and the tenant's reports. Each user with messages gets the same part of the state thread's time
// (burst_queue.h). A connection that waits for its turn is not read.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "daemon/tenants/swap_tenants.h"
#include "daemon/tenants/tenant_messages.h"
#include "daemon/tenants/tenant_table.h"
#include "daemon/users/acceptor.h"
#include "daemon/users/burst_queue.h"
#include "daemon/users/dispatcher.h"
#include "ports/event_loop.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpurota::daemon {

class TenantServer;

// The source of the message that is read next: a connection, or a tenant's event socket.
struct MessageSource {
  const TenantSession* session = nullptr;
  TenantId tenant{};
  bool operator==(const MessageSource&) const = default;
};

class TenantSessions final : private DispatchClient<MessageSource> {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    UserBudgets& budgets;
    SwapTenants& swap;
    TenantTable& table;
    TenantServer& server;  // handles the messages
  };

  explicit TenantSessions(Parts parts);
  ~TenantSessions() override;

  Result<void> listen(const std::string& path, const ipc::ListenOptions& options);
  // Makes the tenant's event socket, and reads it from now on. Returns the tenant's end.
  Result<Fd> open_event_socket(Tenant& tenant);

  // The session has a question again, which is answered in its user's turn.
  void go_on_soon(TenantSession& session);
  // Ends the session: nothing more is read from it or sent to it, and its tenant has no connection.
  // All consequences, and the destruction of the session, come later, when no code iterates over
  // sessions or tenants, so that end() can be called anywhere.
  void end(TenantSession& session, const std::string& why);
  // Destroys the sessions that are over, for callers that hold none of them.
  void destroy_ended();

  enum class Sent { kDone, kFull, kGone };
  // Sends a packet over the tenant's event socket.
  Sent send(TenantId id, std::span<const std::byte> packet);
  // Whether SwapTenants::on_writable() is to be called when there is room.
  void wait_writable(TenantId id, bool wait);
  void hang_up(TenantId id, const std::string& why);

 private:
  struct Ended {
    const TenantSession* session;
    std::optional<TenantId> tenant;
  };
  void welcome(Fd fd, ipc::Peer peer, UserBudgets::Held descriptor);
  void on_session(TenantSession& session, unsigned events);
  void on_event_socket(TenantId id, unsigned events);
  // Whether the user has the turn now, and the message was read.
  template <class Read>
  bool serve_at_once(uid_t user, Read read);
  // Reads one message, or makes a piece of the answer to the last one.
  void read_session(TenantSession& session);
  void read_event(TenantId id);
  void enqueue(TenantSession& session);
  void enqueue(Tenant& tenant);
  void serve(const MessageSource& source) override;
  void serve_session(TenantSession& session);
  void serve_event(TenantId id);

  Parts parts_;
  std::map<const TenantSession*, std::unique_ptr<TenantSession>> sessions_;
  std::vector<Ended> ended_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // tells posted functions if this is gone
  Dispatcher<MessageSource, BurstQueue<MessageSource>> dispatcher_;
  Acceptor acceptor_;
};

}  // namespace gpurota::daemon
