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

// The budgets of the lease's user that a tenant uses.
struct TenantPlace {
  UserBudgets::Held tenant;
  UserBudgets::Held event;  // its descriptor
};

// A process of a lease with a limit, connected through libgpurota.
struct Tenant {
  TenantId id;
  LeaseId lease;
  TenantPlace place;
  std::vector<GpuUuid> slots;  // as laid out in its page
  TrackedProcess process;
  std::optional<sys::SharedPage> page;  // always set once it is in the table
  uid_t user = 0;                       // the user of the process
  bool event_queued = false;
  Fd event;
  ports::EventLoop::SourcePtr event_source;
  TenantSession* session = nullptr;  // null: disconnected
  bool dead = false;
  bool swap = false;                 // of a swap lease
  bool has_latency_classes = false;  // the library knows abi/wire_latency.h
  bool has_parking = false;          // the library knows abi/wire_park.h
  bool has_windows = false;          // the library knows WINDOWS of abi/wire_latency.h
  Bytes last_asked;                  // by its last GROW
  // Allocations that the library has refused, as last read from the page. Empty: the process has
  // connected again and its counts, which began before this tenant, have not been read yet.
  std::optional<std::uint64_t> refused;
  std::vector<Bytes> used_before;  // by slot, before the current sample

  // CONTEXTS messages that wait for a sample that begins after their arrival.
  struct Awaiting {
    std::uint32_t slot = 0;
    std::uint32_t seq = 0;
    TimePoint since{};
  };
  std::vector<Awaiting> awaiting;

  // A QUERY that waits until earlier messages on the event socket have been read.
  struct Asked {
    std::uint32_t slot = 0;
    std::uint32_t seq = 0;
    int patience = 0;  // the most messages that the answer still waits for
  };
  std::optional<Asked> asked;

  gpurota_page& shared() const { return **page; }
  // Allocations refused since the last call.
  std::uint64_t newly_refused() {
    const auto [allocations, said] = read_counts(shared(), slots.size());
    // A process that has connected again may not have written its counts to the new page yet.
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

// A PROCESSES message that is answered in pieces.
struct MembersQuestion {
  gpurota_msg_processes asked;
  gpurota_msg_processes answer;
  std::uint32_t next = 0;  // of `asked`
};

// One CALL connection. With a valid HELLO, the connection becomes that of a tenant. Only
// TenantSessions makes and destroys sessions.
struct TenantSession {
  UserBudgets::Held descriptor;
  Fd fd;  // empty: it has ended
  ipc::Peer peer;
  ports::EventLoop::SourcePtr source;
  ports::EventLoop::SourcePtr hello_deadline;
  ports::EventLoop::SourcePtr asking;  // when to check an unanswered AUTOMATIC again
  Tenant* tenant = nullptr;
  bool queued = false;  // waits for its turn
  // The answer with the lease, to be sent when the changes up to `upto` are on the disk.
  struct Unsaid {
    std::uint64_t upto = 0;
    gpurota_msg_lease answer;
  };
  std::optional<Unsaid> unsaid;
  // While one of these is set, nothing more is read.
  std::optional<MembersQuestion> unanswered;
  std::optional<gpurota_msg_automatic> unsettled;  // an AUTOMATIC to be continued
  bool has_question() const { return unanswered || unsettled; }
};

// The reason for ending a connection whose socket is full.
inline constexpr const char* kDoesNotRead = "it does not read its answers";

// False if the peer is gone or does not read.
template <class Message>
bool send_message(int fd, const Message& message, std::span<const int> fds = {}) {
  const auto sent = ipc::send_packet(fd, std::as_bytes(std::span(&message, 1)), fds);
  return sent && *sent == ipc::IoState::kDone;
}

}  // namespace gpurota::daemon
