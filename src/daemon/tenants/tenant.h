// The daemon's state of each tenant, and of each connection from one. State thread only.
#pragma once

#include "abi/wire.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "core/gpu.h"
#include "daemon/leases/tracked_process.h"
#include "daemon/tenants/tenant_page.h"
#include "daemon/users/user_budgets.h"
#include "ipc/packet.h"
#include "ipc/peer.h"
#include "lease/grant_book.h"
#include "ports/event_loop.h"
#include "sys/shared_page.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

struct TenantSession;

// The budgets of its lease's user that a tenant takes.
struct TenantPlace {
  UserBudgets::Held tenant;
  UserBudgets::Held event;  // its descriptor
};

// A process of a lease with a limit, through libgpurota.
struct Tenant {
  TenantId id;
  LeaseId lease;
  TenantPlace place;
  std::vector<GpuUuid> slots;  // as laid out in its page
  TrackedProcess process;
  std::optional<sys::SharedPage> page;  // always set once it is in the table
  uid_t user = 0;                       // its process's
  bool event_queued = false;
  Fd event;
  ports::EventLoop::SourcePtr event_source;
  TenantSession* session = nullptr;  // null: disconnected
  bool dead = false;
  bool swap = false;  // of a swap lease
  Bytes last_asked;   // by its last GROW
  // Allocations that the library has refused it, as last read off its page; nothing: its library
  // was there before this tenant.
  std::optional<std::uint64_t> refused;
  std::vector<Bytes> used_before;  // by slot, before the sample that is under way

  // CONTEXTS that wait for a sample begun after them.
  struct Awaiting {
    std::uint32_t slot = 0;
    std::uint32_t seq = 0;
    TimePoint since{};
  };
  std::vector<Awaiting> awaiting;

  // A QUERY that waits for what was said on the event socket before it.
  struct Asked {
    std::uint32_t slot = 0;
    std::uint32_t seq = 0;
    int patience = 0;  // messages that it still waits for
  };
  std::optional<Asked> asked;

  gpurota_page& shared() const { return **page; }
  // Allocations refused since it was last asked.
  std::uint64_t newly_refused() {
    const auto [allocations, said] = read_counts(shared(), slots.size());
    // A library that was there before has not written its counts onto the new page yet.
    if (!refused && said + allocations == 0) return 0;
    const std::uint64_t known = std::max(refused.value_or(said), said);
    return known - std::exchange(refused, known).value_or(said);
  }
  std::optional<std::size_t> slot_of(const GpuUuid& gpu) const {
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot] == gpu) return slot;
    }
    return std::nullopt;
  }
};

// A PROCESSES that is answered in pieces.
struct MembersQuestion {
  gpurota_msg_processes asked;
  gpurota_msg_processes answer;
  std::uint32_t next = 0;  // of `asked`
};

// One CALL connection. The connection becomes a tenant's with a good HELLO. Only TenantSessions
// makes and destroys one.
struct TenantSession {
  UserBudgets::Held descriptor;
  Fd fd;  // empty: it has ended
  ipc::Peer peer;
  ports::EventLoop::SourcePtr source;
  ports::EventLoop::SourcePtr hello_deadline;
  ports::EventLoop::SourcePtr asking;  // an AUTOMATIC without an answer is looked at again then
  Tenant* tenant = nullptr;
  bool queued = false;  // waits for its turn
  // Its lease, said when the disk has the changes up to `upto`.
  struct Unsaid {
    std::uint64_t upto = 0;
    gpurota_msg_lease answer;
  };
  std::optional<Unsaid> unsaid;
  // While one of these is there nothing more is read.
  std::optional<MembersQuestion> unanswered;
  std::optional<gpurota_msg_automatic> unsettled;  // an AUTOMATIC that is gone on with
  bool has_question() const { return unanswered || unsettled; }
};

// Why a connection is ended whose socket is full.
inline constexpr const char* kDoesNotRead = "it does not read its answers";

// False if the peer is gone or does not read.
template <class Message>
bool send_message(int fd, const Message& message, std::span<const int> fds = {}) {
  const auto sent = ipc::send_packet(fd, std::as_bytes(std::span(&message, 1)), fds);
  return sent && *sent == ipc::IoState::kDone;
}

}  // namespace gpurota::daemon
