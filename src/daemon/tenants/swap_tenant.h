// The state of a tenant of a swap lease. Plain data; state thread only.
#pragma once

#include "abi/wire.h"
#include "core/gpu.h"
#include "core/lease.h"
#include "ports/event_loop.h"
#include "ports/process_id.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace gpurota::daemon {

// On one GPU.
struct SwapMemory {
  GpuUuid gpu;
  Bytes limit;
  std::optional<Bytes> soft_limit;
  Bytes oversize;                // in host memory, in addition to `limit`
  Bytes most;                    // the limit, or what it was before it was lowered
  std::array<Bytes, 2> ordered;  // by direction: ordered and not yet reported
  std::array<Bytes, 2> excess;   // reported beyond `ordered`, since `ordered` was last zero
  std::array<Bytes, 2> slack;    // how much `excess` is allowed: none before the first order
  Bytes unmeasured;              // granted for contexts that no sample has shown yet
  std::optional<TimePoint> context_since;  // the context was created before this
  int contexts = 0;
  Bytes wired_before;   // granted wired memory without contexts, as HELLO says
  Bytes wired_granted;  // wired memory that it was granted and has not freed
  Bytes freed_out;      // freed while evicted; may be reported again (SwapSpace parks it)
  bool shown = false;   // the driver has listed the process with memory there
  std::optional<TimePoint> vanished;  // when the driver stopped listing it while it owes an answer
  bool unproven = false;              // no sample has confirmed its first report to this daemon
  std::size_t unseen = 0;             // samples in a row that failed to confirm that report
  bool came_back = false;             // connected again, and reports the granted size for contexts
  std::optional<Bytes> told_before;   // as told() before the sample; empty: memory was in motion
  // By sample: how much more memory of the tenant the sample showed than the tenant had reported.
  // Only the last samples, and only those that were taken while none of its memory was being moved.
  std::deque<Bytes> beside;
  // Samples in a row in which memory was still there that the tenant had reported as moved out.
  std::size_t contradicted = 0;
  bool listed = true;  // whether the last sample since the tenant died lists it

  void take_terms(const LeaseGpu& share);
  // Allows the tenant to move this many more bytes.
  void allow(std::uint32_t direction, Bytes bytes);
};
struct SwapQuestion {
  std::uint32_t slot = 0;
  std::uint32_t kind = 0;
  Bytes bytes;
};
struct SwapTenant {
  TenantId id;
  LeaseId lease;
  uid_t uid = 0;
  ports::ProcessId process;
  std::array<std::uint64_t, 2> key{};
  bool makes_way = false;          // a filler, which is evicted for any other lease
  std::vector<SwapMemory> memory;  // by slot
  std::map<std::uint32_t, SwapQuestion> questions;
  std::map<std::uint32_t, ports::EventLoop::SourcePtr> delayed;  // delayed GROWs above a soft limit
  std::deque<std::vector<std::byte>> outbox;  // messages for which the socket was full
  std::uint32_t gate_sent = 0, gate_seen = 0;
  // Since when an order has been open without a sign of life from the tenant.
  std::optional<TimePoint> asked;
  std::optional<gpurota_msg_swap_terms> terms;
  Bytes may_move;     // memory that is likely to move before long; terms depend on it
  Bytes pinned;       // host memory, as its library reports; for display only
  bool here = false;  // turns know it
  bool connected = true;
  bool stopped = false;
  bool rdma = false;                // did not carry out the last order, as an RDMA device is open
  bool stuck = false;               // has moved nothing of an order for too long
  std::optional<TimePoint> moving;  // since when an order has been open without progress
  bool parked = false;              // its lease is parked, or is being parked or brought back
  bool dead = false;
  TimePoint died{};

  pid_t pid() const { return process.pid; }
  // Whether an order to move is not yet reported as done.
  bool moves() const;
};

// Host memory for the evictions of a lease, all its processes together.
struct HostPins {
  Bytes pinned;    // as its programs report
  Bytes may_pin;   // by their terms
  Bytes may_move;  // GPU memory of the lease that is likely to move before long
};

using SwapTenantMap = std::map<TenantId, std::unique_ptr<SwapTenant>>;

}  // namespace gpurota::daemon
