// Events and actions of the turn scheduler: plain data (docs/design/turns.md).
//
// A turn belongs to a lease: the right to be wholly resident and to submit work on all its GPUs.
// The daemon feeds events in and carries actions out; nothing here knows a socket or a driver.
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

// kAuto: turns are taken while the swap leases of the GPU do not fit together. kOn: always.
// kOff: never; memory that would need turns is refused.
enum class TurnsMode { kAuto, kOn, kOff };

struct GpuSettings {
  GpuUuid uuid;
  Bytes capacity;  // what swap leases and their residues may take of the GPU
  TurnsMode mode = TurnsMode::kAuto;
  std::optional<Duration> quantum;  // empty: as globally
  bool operator==(const GpuSettings&) const = default;
};

struct Settings {
  Bytes host_budget{UINT64_MAX};    // host RAM that evicted memory may take
  std::optional<Duration> quantum;  // empty: from the measured cost of moving
  double moving_share = 0.05;       // of the time, at most, with a quantum from the cost
  Duration least_quantum = std::chrono::milliseconds(100);
  Duration most_quantum = std::chrono::minutes(5);
  Duration idle_release = std::chrono::milliseconds(5);
  double priority_share = 0.5;  // of the time that higher priorities may take from lower ones
  Duration priority_burst = std::chrono::seconds(10);  // and how much of it in one piece
  Duration yield_deadline = std::chrono::seconds(30);  // from the first close to drained
  bool stop_at_deadline = false;
  // How long a process that cannot answer may have what another lease needs; then its own ends.
  // Zero: for ever.
  Duration stopped_deadline = std::chrono::minutes(10);
  // How long others may wait for the work of a lease to end, or for its memory to move; then the
  // lease ends. Zero: for ever.
  Duration longest_drain = std::chrono::minutes(10);
  // How long draining may stand still before a submission is let through; four times as long each
  // time that did not help.
  Duration drain_patience = std::chrono::milliseconds(10);
  Duration calm = std::chrono::seconds(1);   // how long all must fit before turns end
  Duration retry = std::chrono::seconds(1);  // after a move that failed
  Bytes piece = mib(64);                     // memory is moved in pieces of at most this
};

struct LeaseTerms {
  struct Gpu {
    GpuUuid uuid;
    Bytes limit;
    std::optional<Bytes> soft_limit{};  // above it the lease gives way to those that are not
    Bytes oversize{};                   // beside the limit, in host memory, where it stays
    bool operator==(const Gpu&) const = default;
  };
  LeaseId id;
  std::vector<Gpu> gpus;
  int priority = 0;  // higher goes first, within Settings::priority_share
  unsigned weight = 1;
  std::optional<Duration> quantum;  // zero: from the measured cost, whatever its GPUs say
  bool operator==(const LeaseTerms&) const = default;
};

// One tenant's own report of its memory on one GPU: at its first contact, and when a new daemon
// hears of it again.
struct TenantMemory {
  GpuUuid gpu;
  Bytes movable;      // can be evicted; here or out
  Bytes resident;     // the part of it that is in GPU memory now
  Bytes wired;        // residue, and what cannot be moved
  Bytes hosted{};     // of what its lease has in host memory for good
  Bytes lingering{};  // beside all that: it says that it is out, and that is not believed yet
  bool operator==(const TenantMemory&) const = default;
};

// Events. Numbers that a tenant sends are hints: they are bounded by what is known.

struct AddTenant {
  TenantId tenant;
  LeaseId lease;
  std::vector<TenantMemory> memory;
  bool gate_open = false;  // it was let run by a daemon that is gone, or on a connection that is
  TenantId replaces{};     // what the same process was on its last connection; 0: none
};
// Its process is dead, and its memory not back yet: counted, and nothing is asked of it.
struct TenantDied {
  TenantId tenant;
};
struct RemoveTenant {  // its memory is free, or counted by somebody else from now on
  TenantId tenant;
};
// Whether the tenant can answer: false while it is stopped, traced, frozen or disconnected.
struct Reachable {
  TenantId tenant;
  bool reachable = true;
};
// Sent when it changes, and in answer to each gate action.
struct TenantStatus {
  TenantId tenant;
  std::uint32_t gate_seq = 0;  // of the last gate action it has carried out
  bool busy = false;           // work of its is in flight, or being submitted
  std::uint32_t waiting = 0;   // submissions that stand at its gate
  std::uint32_t ready = 0;     // of these, for a GPU on which it has nothing in flight
};
struct Grow {
  TenantId tenant;
  GpuUuid gpu;
  std::uint32_t seq = 0;
  Bytes bytes;
  bool wired = false;
  bool hosted = false;  // in host memory: of its lease's oversize, and no turn needed
};
struct Shrink {
  TenantId tenant;
  GpuUuid gpu;
  Bytes resident;  // freed in GPU memory
  Bytes out;       // freed while evicted
  Bytes wired;
  Bytes hosted{};
};
// The memory that a tenant holds beside its report, by the driver's count: modules, local memory.
struct Measured {
  TenantId tenant;
  GpuUuid gpu;
  Bytes beside;
  bool confirms = false;  // what it moved out before and was doubted is gone, or in `beside`
};
// Since the last report; `returned` is what was ordered and will not be done (failed, or freed
// meanwhile).
struct Evicted {
  TenantId tenant;
  GpuUuid gpu;
  Bytes bytes;
  Bytes returned;
  bool failed = false;
  Bytes clean;           // of bytes: it did not have to be copied
  bool doubted = false;  // the room is nobody's until a Measured confirms it
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
  Bytes bytes;  // in addition to what was ordered before
  bool operator==(const Evict&) const = default;
};
struct Restore {
  TenantId tenant;
  GpuUuid gpu;
  Bytes bytes;  // room that is there for it, in addition to before
  bool operator==(const Restore&) const = default;
};
enum class GrowAnswer {
  kGranted,
  kRefusedLimit,     // the lease's own limit
  kRefusedCapacity,  // some lease could no longer be resident on its own
  kRefusedHost,      // host RAM could not take what would be out at once
  kRefusedTurnsOff,  // it would need turns, and they are off
};
struct AnswerGrow {
  TenantId tenant;
  GpuUuid gpu;
  std::uint32_t seq = 0;
  GrowAnswer answer = GrowAnswer::kGranted;
  Bytes to_host{};  // refused, but if so much of it is asked for as host memory, the rest fits
  bool operator==(const AnswerGrow&) const = default;
};
enum class Trouble {
  kNotYielding,   // past its deadline; `stop` says what policy wants
  kUnreachable,   // has what others need, and cannot answer
  kMoveFailed,    // its eviction or restoring failed and was rolled back
  kNoRoom,        // it waits, as it no longer fits beside what nobody can move
  kOverCapacity,  // more is held than the GPU's capacity: counted by NVML, not asked for
  kStillThere,    // it said that memory is out which NVML still counts
  kNotThere,      // it said that memory is there which NVML does not count
};
struct ReportTrouble {
  Trouble trouble = Trouble::kNotYielding;
  LeaseId lease;
  TenantId tenant;  // 0: the lease as a whole
  bool stop = false;
  GpuUuid gpu;                        // of kOverCapacity, kStillThere and kNotThere
  std::optional<Duration> ends_in{};  // of kNotYielding: then the lease ends
  bool operator==(const ReportTrouble&) const = default;
};

using Action = std::variant<SetGate, Evict, Restore, AnswerGrow, ReportTrouble>;
using Actions = std::vector<Action>;

// One line each, for traces.
std::string to_string(const Event& event);
std::string to_string(const Action& action);
const char* to_string(GrowAnswer answer);

}  // namespace gpurota::sched
