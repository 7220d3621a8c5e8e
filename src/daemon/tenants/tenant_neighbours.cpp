#include "daemon/tenants/tenant_neighbours.h"

#include "daemon/leases/lease_members.h"
#include "ipc/packet.h"
#include "ipc/unix_socket.h"

#include <array>
#include <utility>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

// How long all processes take to connect to a new daemon.
constexpr Duration kAllAreBack = std::chrono::seconds(10);
// How long one piece of an answer about many processes may take.
constexpr Duration kPieceOfAnswer = std::chrono::microseconds(500);
// How many ancestors are looked up for a piece. Finding the owner of a process takes two more
// reads.
constexpr std::size_t kReadsInAPiece = 20;

}  // namespace

bool TenantNeighbours::members(Tenant& tenant, const gpurota_msg_processes& message) {
  tenant.session->unanswered = MembersQuestion{
      message, make_message<gpurota_msg_processes>(GPUROTA_MSG_MEMBERS, message.header.seq)};
  return go_on(tenant);
}

bool TenantNeighbours::go_on(Tenant& tenant) {
  MembersQuestion& question = *tenant.session->unanswered;
  const TimePoint begun = parts_.loop.now();
  std::size_t reads_left = kReadsInAPiece;
  for (; question.next < question.asked.count; ++question.next) {
    if (parts_.loop.now() - begun > kPieceOfAnswer) return true;
    const pid_t pid = question.asked.pid[question.next];
    if (pid <= 0) continue;
    if (parts_.table.lease_of(pid) != tenant.lease) {
      if (!parts_.attribution.walk_ahead(pid, reads_left)) return true;
      if (parts_.attribution.owner_of(pid).lease != tenant.lease) continue;
    }
    question.answer.pid[question.answer.count++] = pid;
  }
  const auto answer = question.answer;
  tenant.session->unanswered.reset();
  return send_message(tenant.session->fd.get(), answer);
}

// A descriptor that waits to be read counts against the daemon, so no connection may have two. A
// client that asks again before it has read its answer loses its connection. If the owner of the
// shared memory has an unread message, the client gets GPUROTA_REFUSED_BUSY and asks again later.
bool TenantNeighbours::open(Tenant& tenant, const gpurota_msg_open& message) {
  const int call = tenant.session->fd.get();
  if (ipc::has_unread(call)) return false;
  auto answer = make_message<gpurota_msg_opened>(GPUROTA_MSG_OPENED, message.header.seq);
  Fd end;
  bool own_lease = false;
  answer.status = bring_together(tenant, message, &end, &own_lease);
  answer.own_lease = own_lease ? 1 : 0;
  if (answer.status != GPUROTA_OK) return send_message(call, answer);
  return send_message(call, answer, std::array{end.get()});
}

std::uint32_t TenantNeighbours::bring_together(Tenant& opener, const gpurota_msg_open& message,
                                               Fd* end, bool* own_lease) {
  const LeaseEntry* const entry = parts_.tables.find(opener.lease);
  if (!entry) return GPUROTA_REFUSED_LEASE;
  const SwapTenants::Owner found = parts_.swap.find_owner(message.name.owner, entry->lease.uid);
  const bool may_come = found.away || parts_.loop.now() - since_ < kAllAreBack;
  if (!found.tenant) return may_come ? GPUROTA_REFUSED_BUSY : GPUROTA_REFUSED_LEASE;
  const Tenant* const owner = parts_.table.find(*found.tenant);
  if (!owner || !owner->event || ipc::has_unread(owner->event.get())) return GPUROTA_REFUSED_BUSY;
  auto pair = ipc::make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return GPUROTA_REFUSED_BUSY;
  auto question = make_message<gpurota_msg_open>(GPUROTA_MSG_SWAP_OPEN, 0);
  question.name = message.name;
  if (!send_message(owner->event.get(), question, std::array{pair->first.get()})) {
    return GPUROTA_REFUSED_BUSY;
  }
  *end = std::move(pair->second);
  *own_lease = owner->lease == opener.lease;
  return GPUROTA_OK;
}

}  // namespace gpurota::daemon
