#include "daemon/tenants/tenant_server.h"

#include "base/log.h"
#include "daemon/leases/lease_members.h"
#include "daemon/tenants/tenant_server_parts.h"
#include "ipc/packet.h"
#include "ipc/unix_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

// A library sends HELLO at once; who does not within this is no library.
constexpr Duration kHelloPatience = std::chrono::seconds(10);
constexpr std::uint32_t kOldestVersion = 1;
// Of one lease: who starts and kills processes without end waits for their memory to be back.
constexpr int kMostDead = 1024;

// Whether the driver counts memory of the lease's GPUs for the process; nothing: not looked yet.
std::optional<bool> lists(const GpuTable& gpus, const Lease& lease, pid_t pid) {
  bool looked = true;
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* const entry = gpus.find(share.uuid);
    if (!entry || entry->taken == TimePoint{}) {
      looked = false;
      continue;
    }
    const auto& seen = entry->sample.processes;
    if (std::any_of(seen.begin(), seen.end(), [&](const auto& p) { return p.pid == pid; })) {
      return true;
    }
  }
  return looked ? std::optional(false) : std::nullopt;
}

}  // namespace

TenantServer::TenantServer(Parts parts)
    : parts_(std::move(parts)),
      turns_(parts_.loop, *this),
      since_(parts_.loop.now()),
      doorman_(parts_.loop, {"tenant", [this] { return parts_.config.max_connections_per_user; },
                             [this](uid_t uid) {
                               return std::count_if(
                                   sessions_.begin(), sessions_.end(),
                                   [&](const auto& s) { return s.second->peer.uid == uid; });
                             },
                             parts_.budgets,
                             [this](Fd fd, ipc::Peer peer, UserBudgets::Held held) {
                               welcome(std::move(fd), std::move(peer), std::move(held));
                             }}) {
  parts_.swap.set_wire(*this);
}
TenantServer::~TenantServer() = default;

SwapWire::Sent TenantServer::send(TenantId id, std::span<const std::byte> packet) {
  const Tenant* const tenant = find(id);
  if (!tenant || !tenant->event) return Sent::kGone;
  const auto sent = ipc::send_packet(tenant->event.get(), packet);
  if (!sent || *sent == ipc::IoState::kClosed) return Sent::kGone;
  return *sent == ipc::IoState::kDone ? Sent::kDone : Sent::kFull;
}

void TenantServer::wait_writable(TenantId id, bool wait) {
  const Tenant* const tenant = find(id);
  if (tenant && tenant->event_source) tenant->event_source->set_writable(wait);
}

TenantServer::Tenant* TenantServer::find(TenantId id) const {
  const auto it = tenants_.find(id);
  return it == tenants_.end() ? nullptr : it->second.get();
}

void TenantServer::welcome(Fd fd, ipc::Peer peer, UserBudgets::Held descriptor) {
  if (peer.process.pid == 0) return;  // in a pid namespace that hides it: cannot be followed
  auto session = std::make_unique<Session>();
  Session& added = *session;
  added.descriptor = std::move(descriptor);
  added.fd = std::move(fd);
  added.peer = std::move(peer);
  auto source =
      parts_.loop.watch_fd(added.fd.get(), false, ports::Urgency::kClient,
                           [this, &added](unsigned events) { on_session(added, events); });
  auto deadline =
      parts_.loop.add_timer(parts_.loop.now() + kHelloPatience, ports::Urgency::kHousekeeping,
                            [this, &added] { end_session(added, "it did not send HELLO"); });
  if (!source || !deadline) return;
  added.source = std::move(*source);
  added.hello_deadline = std::move(*deadline);
  sessions_.emplace(&added, std::move(session));
}

void TenantServer::read_session(Session& session) {
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  const auto received = ipc::receive_packet(session.fd.get(), buffer, 0);
  if (!received) return end_session(session, received.error().message);
  if (received->state == ipc::IoState::kWouldBlock) return;
  if (received->state == ipc::IoState::kClosed) return end_session(session, "");
  const auto message = parse_tenant_message(std::span(buffer).first(received->size));
  if (!message) return end_session(session, message.error().message);
  if (!handle(session, *message)) end_session(session, "it broke the protocol");
}

bool TenantServer::handle(Session& session, const TenantMessage& message) {
  if (const auto* greeting = std::get_if<gpurota_msg_hello>(&message)) {
    if (session.tenant) return false;
    hello(session, *greeting);
    return true;
  }
  if (const auto* question = std::get_if<gpurota_msg_automatic>(&message)) {
    return !session.tenant && automatic(session, *question);
  }
  if (!session.tenant || is_swap_message(message)) return false;
  Tenant& tenant = *session.tenant;
  if (const auto* m = std::get_if<gpurota_msg_grow>(&message)) return grow(tenant, *m);
  if (const auto* m = std::get_if<gpurota_msg_return>(&message)) return give_back(tenant, *m);
  if (const auto* m = std::get_if<gpurota_msg_query>(&message)) {
    return ask(tenant, *m);
  }
  if (const auto* m = std::get_if<gpurota_msg_processes>(&message)) return members(tenant, *m);
  if (const auto* m = std::get_if<gpurota_msg_open>(&message)) return open(tenant, *m);
  return contexts(tenant, std::get<gpurota_msg_contexts>(message));
}

void TenantServer::refuse(Session& session, std::uint32_t seq, std::uint32_t status) {
  auto welcome = make_message<gpurota_msg_welcome>(GPUROTA_MSG_WELCOME, seq);
  welcome.version = GPUROTA_WIRE_VERSION;
  welcome.status = status;
  (void)send_message(session.fd.get(), welcome);
}

std::uint32_t TenantServer::admit(const Session& session, const gpurota_msg_hello& hello,
                                  const LeaseEntry*& entry) const {
  // A newer library speaks as an older one where nothing newer was agreed on (features).
  if (hello.version < kOldestVersion) return GPUROTA_REFUSED_VERSION;
  const std::string_view token(hello.token, sizeof hello.token);
  entry = find_told_lease(parts_.leases, LeaseId{hello.lease}, token);
  if (!entry || entry->lease.exclusive()) return GPUROTA_REFUSED_LEASE;
  // Another library's memory cannot be moved: it is charged by what the driver counts.
  if (entry->lease.swap() && (hello.features & GPUROTA_FEATURE_SWAP) == 0) {
    return GPUROTA_REFUSED_VERSION;
  }
  // The owner's own processes need no token: the kernel says whose they are. But root in one pod is root in all.
  const bool own = session.peer.uid == entry->lease.uid && entry->lease.kind != LeaseKind::kPod;
  const bool may = own || has_token(*entry, token);
  return may ? GPUROTA_OK : GPUROTA_REFUSED_LEASE;
}

// Who comes back is not one more.
Result<TenantServer::Place> TenantServer::place_for(const Session& session,
                                                    const gpurota_msg_hello& hello,
                                                    const Lease& lease) {
  const ports::ProcessId& process = session.peer.process;
  const auto back = [&] { return comes_back(lease, hello, process); };
  if (crowded(lease.id, process) && !back()) {
    return fail(Code::kLimit, fmt::format("the lease has {} already, as many as the site allows "
                                          "(max_tenants_per_lease)",
                                          parts_.config.max_tenants_per_lease));
  }
  Place place;
  auto tenant = parts_.budgets.take(lease.uid, Budget::kTenants);
  if (!tenant && !back()) return tl::unexpected(std::move(tenant).error());
  place.tenant = tenant ? std::move(*tenant) : parts_.budgets.charge(lease.uid, Budget::kTenants);
  GPUROTA_ASSIGN_OR_RETURN(place.event, parts_.budgets.take(lease.uid, Budget::kDescriptors));
  return place;
}

// A process that has memory under the lease is in it, however many it may have by now: it would only be counted
// without being asked. What it says of itself is believed for as long as nobody has looked.
bool TenantServer::comes_back(const Lease& lease, const gpurota_msg_hello& hello,
                              const ports::ProcessId& process) const {
  bool known = false;
  for (const auto& [id, tenant] : tenants_of(lease.id)) {
    if (tenant->process.id != process || tenant->dead) continue;
    if (tenant->session) return false;
    known = true;
  }
  return known || lists(parts_.gpus, lease, process.pid).value_or(hello.held_count != 0);
}

// The dead whose memory is not back yet take nobody's place, up to a bound of their own; nor does what
// the newcomer itself was on an earlier connection.
bool TenantServer::crowded(LeaseId lease, const ports::ProcessId& newcomer) const {
  int alive = 0, dead = 0;
  for (const auto& [id, tenant] : tenants_of(lease)) {
    if (!tenant->process.alive()) {
      ++dead;
    } else if (tenant->session || tenant->process.id != newcomer) {
      ++alive;
    }
  }
  return alive >= parts_.config.max_tenants_per_lease || dead >= kMostDead;
}

// Who is refused has not said hello: its time goes on.
void TenantServer::hello(Session& session, const gpurota_msg_hello& message) {
  end_ended_sessions();  // one of them may be its own last
  const std::uint32_t seq = message.header.seq;
  const LeaseEntry* entry = nullptr;
  if (const std::uint32_t status = admit(session, message, entry); status != GPUROTA_OK) {
    return refuse(session, seq, status);
  }
  auto place = place_for(session, message, entry->lease);
  auto added = place ? add_tenant(session, message, *entry, std::move(*place))
                     : tl::unexpected(std::move(place).error());
  if (!added && added.error().code == Code::kLimit) {
    parts_.records.on_crowd(entry->lease, session.peer.process.pid, added.error().message);
    return refuse(session, seq, GPUROTA_REFUSED_BUSY);
  }
  if (!added) {
    // To the library that is a daemon which is away: it tries again.
    return end_session(session, "it cannot be admitted: " + added.error().message);
  }
  session.hello_deadline.reset();
  Tenant& tenant = **added;
  if (parts_.roster.add(tenant.lease, tenant.process.id, tenant.id, parts_.loop.now())) {
    for (const GpuUuid& gpu : tenant.slots) parts_.samples.look_soon(gpu);
  }
  const auto event = open_event_socket(tenant);
  if (!event) return end_session(session, event.error().message);
  publish_all(tenant.lease);
  auto welcome = make_message<gpurota_msg_welcome>(GPUROTA_MSG_WELCOME, seq);
  welcome.version = GPUROTA_WIRE_VERSION;
  welcome.status = GPUROTA_OK;
  welcome.tenant = tenant.id.value;
  welcome.features = GPUROTA_FEATURE_PROCESSES | GPUROTA_FEATURE_OPEN;
  if (tenant.swap) welcome.features |= GPUROTA_FEATURE_SWAP;
  if (!parts_.config.program_notices) welcome.features |= GPUROTA_FEATURE_QUIET;
  const std::array fds{tenant.page->fd(), event->get()};
  const bool taken = send_message(session.fd.get(), welcome, fds);
  tenant.page->close_fd();
  if (!taken) end_session(session, "it did not take the welcome");
}

// The tenant's end of it.
Result<Fd> TenantServer::open_event_socket(Tenant& tenant) {
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

bool TenantServer::automatic(Session& session, const gpurota_msg_automatic& question) {
  if (session.unsaid) return false;
  const AutomaticLeases::Answer found =
      question.lease == 0 && question.token[0] == '\0'
          ? parts_.automatic.ask(session.peer, read_wish(question))
          : parts_.automatic.join(session.peer, LeaseId{question.lease},
                                  {question.token, sizeof question.token});
  if (found.later) {
    // The library asks again, for as long as it is told to wait for a daemon.
    end_session(session, "");
    return true;
  }
  if (found.unread) return ask_again(session, question);
  const ports::Durability* const disk = parts_.durability;
  if (found.made && disk && disk->made() > disk->told()) unsettled_[found.lease] = disk->made();
  auto answer = make_message<gpurota_msg_lease>(GPUROTA_MSG_LEASE, question.header.seq);
  answer.version = GPUROTA_WIRE_VERSION;
  answer.status = found.status;
  answer.lease = found.lease.value;
  found.token.copy(answer.token, sizeof answer.token);
  // Zeros are behind it already.
  found.visible.copy(answer.visible, sizeof answer.visible - 1);
  found.why.copy(answer.why, sizeof answer.why - 1);
  return tell_lease(session, answer);
}

// As every other lease: not before a loss of power leaves it there.
bool TenantServer::tell_lease(Session& session, const gpurota_msg_lease& answer) {
  const auto unsettled = unsettled_.find(LeaseId{answer.lease});
  if (unsettled == unsettled_.end()) return send_message(session.fd.get(), answer);
  session.unsaid = {unsettled->second, answer};
  unsaid_.insert(&session);
  return true;
}

// What the disk has failed to keep is there, until the machine loses its power: the program need not know.
void TenantServer::on_durability(const ports::Durability::News& news) {
  std::erase_if(unsettled_, [&](const auto& lease) { return lease.second <= news.upto; });
  for (auto it = unsaid_.begin(); it != unsaid_.end();) {
    Session& session = **it;
    if (session.unsaid->upto > news.upto) {
      ++it;
      continue;
    }
    it = unsaid_.erase(it);
    const gpurota_msg_lease answer = session.unsaid->answer;
    session.unsaid.reset();
    if (!send_message(session.fd.get(), answer)) {
      end_session(session, "it does not take its answer");
    }
  }
}

bool TenantServer::ask_again(Session& session, const gpurota_msg_automatic& question) {
  auto timer = parts_.loop.add_timer(parts_.loop.now() + AutomaticLeases::kUnreadPeriod,
                                     ports::Urgency::kClient, [this, &session, question] {
                                       if (session.tenant || automatic(session, question)) return;
                                       end_session(session, "it does not take its answer");
                                     });
  if (!timer) return false;
  session.asking = std::move(*timer);
  return true;
}

bool TenantServer::take_event(Tenant& tenant, const TenantMessage& message) {
  if (tenant.swap) return is_swap_message(message) && parts_.swap.take(tenant.id, message);
  const auto* back = std::get_if<gpurota_msg_return>(&message);
  return back && give_back(tenant, *back);
}

void TenantServer::read_event(TenantId id) {
  Tenant* const tenant = find(id);
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  const auto received = ipc::receive_packet(tenant->event.get(), buffer, 0);
  if (received && received->state == ipc::IoState::kWouldBlock) return;
  const auto message = received && received->state == ipc::IoState::kDone
                           ? parse_tenant_message(std::span(buffer).first(received->size))
                           : fail(Code::kGone, "");
  if (message && take_event(*tenant, *message)) return answer_asked(id);
  // The helper thread is gone or broken: the tenant is served, but can no longer be asked.
  hang_up(id, message ? "it broke the protocol" : "");
}

void TenantServer::hang_up(TenantId id, const std::string& why) {
  Tenant* const tenant = find(id);
  if (!tenant) return;
  tenant->event_source.reset();
  tenant->event.reset();
  if (tenant->session) {
    end_session(*tenant->session, why);
  } else if (tenant->swap) {
    parts_.swap.on_disconnect(id);
  }
}

void TenantServer::end_session(Session& session, const std::string& why) {
  if (!session.fd) return;
  if (!why.empty()) {
    log::warn("tenant disconnected",
              {{"pid", session.peer.process.pid}, {"uid", session.peer.uid}, {"reason", why}});
  }
  session.source.reset();
  if (session.queued) turns_.remove(session.peer.uid, {&session, {}});
  session.hello_deadline.reset();
  session.asking.reset();
  unsaid_.erase(&session);
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
    if (!alive.expired()) end_ended_sessions();
  });
}

void TenantServer::end_ended_sessions() {
  for (const Ended& ended : std::exchange(ended_, {})) {
    sessions_.erase(ended.session);
    const Tenant* const tenant = ended.tenant ? find(*ended.tenant) : nullptr;
    if (!tenant || tenant->session) continue;
    if (tenant->swap) parts_.swap.on_disconnect(tenant->id);
    if (!tenant->dead) carry_out(parts_.grants.disconnect(tenant->id, parts_.loop.now()));
  }
}

}  // namespace gpurota::daemon
