// Events and actions of the turn scheduler: plain data (docs/design/turns.md).
//
// A turn is a lease's right to be fully resident and to submit work on all its GPUs. The daemon
// feeds events in and carries actions out; nothing here uses a socket or a driver.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gpurota::sched {

// kAuto: turns are taken while the swap leases of the GPU do not fit together. kOn: even while they
// fit, once two leases have memory there. kOff: never; memory that would need turns is refused.
enum class TurnsMode { kAuto, kOn, kOff };

struct GpuSettings {
  GpuUuid uuid;
  Bytes capacity;  // what swap leases and their residues may take of the GPU
  TurnsMode mode = TurnsMode::kAuto;
  std::optional<Duration> quantum;  // empty: Settings::quantum
  bool operator==(const GpuSettings&) const = default;
};

struct Settings {
  Bytes host_budget{UINT64_MAX};    // host RAM that evicted memory may take
  std::optional<Duration> quantum;  // empty: from the measured cost of moving
  double moving_share = 0.05;       // part of the time for moving, if the cost sets the quantum
  Duration least_quantum = std::chrono::milliseconds(100);
  Duration most_quantum = std::chrono::minutes(5);
  Duration idle_release = std::chrono::milliseconds(5);
  double priority_share = 0.5;  // part of the time that higher priorities may take from lower ones
  Duration priority_burst = std::chrono::seconds(10);  // the most of that time in one go
  Duration yield_deadline = std::chrono::seconds(30);  // from closing the gates until drained
  bool stop_at_deadline = false;
  // How long a process that cannot answer may have memory that another lease needs. Then the lease
  // of that process ends. Zero: for ever.
  Duration stopped_deadline = std::chrono::minutes(10);
  // How long other leases may wait for the work of a lease to end, or for its memory to move. Then
  // the lease ends. Zero: for ever.
  Duration longest_drain = std::chrono::minutes(10);
  // How long draining may make no progress before a submission is let through. After each
  // submission that did not help, this time is multiplied by four.
  Duration drain_patience = std::chrono::milliseconds(10);
  Duration calm = std::chrono::seconds(1);   // how long all memory must fit before turns end
  Duration retry = std::chrono::seconds(1);  // after a move that failed
  Bytes piece = mib(64);                     // memory is moved in pieces of at most this
};

struct LeaseTerms {
  struct Gpu {
    GpuUuid uuid;
    Bytes limit;
    std::optional<Bytes> soft_limit{};  // leases above their soft limit go after the others
    Bytes oversize{};                   // in addition to the limit; always in host memory
    bool operator==(const Gpu&) const = default;
  };
  LeaseId id;
  std::vector<Gpu> gpus;
  int priority = 0;  // higher goes first, within Settings::priority_share
  unsigned weight = 1;
  std::optional<Duration> quantum;  // empty: as its GPUs are set; zero: from the measured cost
  bool operator==(const LeaseTerms&) const = default;
};

// A tenant's report of its memory on one GPU, at its first contact and when it connects to a new
// daemon.
struct TenantMemory {
  GpuUuid gpu;
  Bytes movable;      // can be evicted; in GPU memory or evicted
  Bytes resident;     // the part of `movable` that is in GPU memory now
  Bytes wired;        // residue, and what cannot be moved
  Bytes hosted{};     // of its lease's oversize part, in host memory for good
  Bytes lingering{};  // beside all that: reported as evicted, but not confirmed yet
  bool operator==(const TenantMemory&) const = default;
};

// Events. Numbers from tenants are not trusted: they are bounded by what is known.

struct AddTenant {
  TenantId tenant;
  LeaseId lease;
  std::vector<TenantMemory> memory;
  bool gate_open = false;  // opened by an earlier daemon, or on an earlier connection
  TenantId replaces{};     // the process's tenant on its last connection; 0: none
};
// The tenant's process is dead, but its memory is not free yet: the memory counts, and the tenant
// gets no orders.
struct TenantDied {
  TenantId tenant;
};
struct RemoveTenant {  // its memory is free, or counted elsewhere from now on
  TenantId tenant;
};
// Whether the tenant can answer: false while it is stopped, traced, frozen or disconnected.
struct Reachable {
  TenantId tenant;
  bool reachable = true;
};
// Sent when the status changes, and in answer to each gate action.
struct TenantStatus {
  TenantId tenant;
  std::uint32_t gate_seq = 0;  // of the last gate action it has carried out
  bool busy = false;           // its work is in flight, or being submitted
  std::uint32_t waiting = 0;   // submissions that wait at its gate
  std::uint32_t ready = 0;     // of these, for a GPU where the tenant has nothing in flight
};
struct Grow {
  TenantId tenant;
  GpuUuid gpu;
  std::uint32_t seq = 0;
  Bytes bytes;
  bool wired = false;
  bool hosted = false;  // wanted in host memory, from the lease's oversize; needs no turn
};
struct Shrink {
  TenantId tenant;
  GpuUuid gpu;
  Bytes resident;  // freed in GPU memory
  Bytes out;       // freed while evicted
  Bytes wired;
  Bytes hosted{};
};
// GPU memory that a tenant holds beside its report, as the driver counts it: modules, local memory.
struct Measured {
  TenantId tenant;
  GpuUuid gpu;
  Bytes beside;
  // The memory of doubted evictions (Evicted::doubted) is now either free or part of `beside`.
  bool confirms = false;
};
// Moved since the last report. `returned` is the part of an order that will not be carried out
// (failed, or freed meanwhile).
struct Evicted {
  TenantId tenant;
  GpuUuid gpu;
  Bytes bytes;
  Bytes returned;
  bool failed = false;
  Bytes clean;           // part of `bytes` that did not have to be copied
  bool doubted = false;  // nobody gets the room before a Measured confirms the eviction
};
struct Restored {
  TenantId tenant;
  GpuUuid gpu;
  Bytes bytes;
  Bytes returned;
  bool failed = false;
};
struct Tick {};  // a deadline has passed

using Event = std::variant<AddTenant, TenantDied, RemoveTenant, Reachable, TenantStatus, Grow,
                           Shrink, Measured, Evicted, Restored, Tick>;

// Actions.

enum class GateOrder { kOpen, kClose, kLetOneThrough };
struct SetGate {
  TenantId tenant;
  std::uint32_t seq = 0;
  GateOrder order = GateOrder::kClose;
  bool operator==(const SetGate&) const = default;
};
struct Evict {
  TenantId tenant;
  GpuUuid gpu;
  Bytes bytes;  // in addition to earlier orders
  bool operator==(const Evict&) const = default;
};
struct Restore {
  TenantId tenant;
  GpuUuid gpu;
  Bytes bytes;  // that there is room for, in addition to earlier orders
  bool operator==(const Restore&) const = default;
};
enum class GrowAnswer {
  kGranted,
  kRefusedLimit,     // the lease's own limit
  kRefusedCapacity,  // some lease could no longer be resident on its own
  kRefusedHost,      // host RAM could not take what would be evicted at the same time
  kRefusedTurnsOff,  // it would need turns, and they are off
};
struct AnswerGrow {
  TenantId tenant;
  GpuUuid gpu;
  std::uint32_t seq = 0;
  GrowAnswer answer = GrowAnswer::kGranted;
  Bytes to_host{};  // of a refusal: if this much is requested as host memory, the rest fits
  bool operator==(const AnswerGrow&) const = default;
};
enum class Trouble {
  kNotYielding,   // past a deadline; `stop`: the lease is to end
  kUnreachable,   // has memory that others need, and cannot answer
  kMoveFailed,    // its eviction or restoring failed and was rolled back
  kNoRoom,        // waits: no longer fits beside memory that cannot be moved
  kOverCapacity,  // NVML counts more than the GPU's capacity: memory taken without asking
  kStillThere,    // NVML still counts memory that was reported as evicted
  kNotThere,      // NVML does not count memory that was reported as resident
};
struct ReportTrouble {
  Trouble trouble = Trouble::kNotYielding;
  LeaseId lease;
  TenantId tenant;  // 0: the lease as a whole
  bool stop = false;
  GpuUuid gpu;                        // of kOverCapacity, kStillThere and kNotThere
  std::optional<Duration> ends_in{};  // of kNotYielding: the lease ends after this time
  bool operator==(const ReportTrouble&) const = default;
};

using Action = std::variant<SetGate, Evict, Restore, AnswerGrow, ReportTrouble>;
using Actions = std::vector<Action>;

// One line each, for traces.
std::string to_string(const Event& event);
std::string to_string(const Action& action);
const char* to_string(GrowAnswer answer);

}  // namespace gpurota::sched
