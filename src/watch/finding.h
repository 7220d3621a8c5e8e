// Input (Reading) and output (Finding, Step) of the watch, as plain data. Pure.
//
// Filled by the daemon from a sample, /proc and the leases; read by Watcher. No clock, no I/O.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/time.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::watch {

using FindingId = Id<struct FindingTag, std::uint64_t>;

enum class FindingKind {
  kUnreservedUse,  // memory held without a lease, above the threshold
  kForeignUse,     // a process on a GPU that another user has whole
  kOverLimit,      // a lease holds more than its limit
  kUnused,         // a lease holds a GPU and nothing runs there
  kNotLimited,     // libgpurota is loaded in a process to limit it, but does not limit it
};

// By severity: each action includes those before it.
enum class Action { kReport, kNotify, kStop };

// The state of libgpurota in a process that a limit is meant for.
enum class Library {
  kNotAsked,  // a tenant, or there is no limit
  kUnknown,   // unknown, or not known in time
  kAbsent,    // not loaded there, or not asked to limit the process (its environment was cleared)
  kSilent,    // loaded and asked, but never connected: the limit is not enforced
  kAway,      // connected to an earlier daemon, and about to connect again
};

// One process on one GPU.
struct SeenProcess {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // 0: gone or hidden, so it can never be signalled
  std::optional<uid_t> uid;       // empty: gone or hidden
  bool gone = false;              // NVML lists a pid that no process has
  std::optional<LeaseId> lease;   // the lease to which it belongs, on whatever GPUs that is
  // NVML's figure, or libgpurota's where NVML has none; empty: unknown.
  std::optional<Bytes> used;
  Bytes imported{};  // of `used`: memory that another process allocated
  bool graphics = false;
  bool tenant = false;  // connected through libgpurota, which holds it to its limit
  Library library = Library::kNotAsked;
  bool container = false;  // in a container's control group
  std::string executable;  // path as the kernel gives it, untrusted bytes; empty: unknown
};

// A lease on the GPU of a reading.
struct SeenLease {
  LeaseId id;
  uid_t uid = 0;
  std::optional<Bytes> limit;  // empty: it has the GPU whole
  int gpus = 1;                // how many GPUs it has in all
  bool ending = false;
  // A reservation: every process of the lease's user on the lease's GPUs belongs to the lease,
  // whatever started the process.
  bool takes_all_of_user = false;
  // The lease's command talks to a container engine. Processes that the engine starts are not in
  // the lease.
  bool starts_containers = false;
  // A filler's lease ends when anybody else needs the GPU. The lease covers no other processes of
  // its user, and entitles nobody to the GPU.
  bool filler = false;
  bool parked = false;  // its processes are off the GPU because somebody wants that
  // The lease's charge on this GPU, without what is evicted. Memory imported from another lease is
  // in both charges, and once in Reading::counted_again.
  Bytes charge{};
  // The lease's memory is being moved, or its charge is not known yet.
  bool moving = false;
};

// Memory in use that no listed process has, beyond the GPU's normal use. HiddenMemory computes it.
struct Hidden {
  bool is_known = false;    // false: not computed
  Bytes bytes;              // zero: too little to tell from noise
  bool is_leaving = false;  // much, and not for long: memory of an ended program, being freed
  bool in_use = false;      // much, and it stays: use without a lease

  bool operator==(const Hidden&) const = default;
};

// A sample of one GPU that answered, with the processes and leases there.
struct Reading {
  GpuUuid gpu;
  Bytes size;                 // of its memory
  std::optional<Bytes> used;  // by all together; empty where NVML cannot say
  std::vector<SeenProcess> processes;
  bool lists_processes = true;  // false: there may be more than `processes`
  std::vector<SeenLease> leases;
  // The part of the sum of all charges that counts memory again because several leases have it.
  Bytes counted_again{};
  Hidden hidden{};
};

struct Ignored {
  std::optional<uid_t> uid;  // empty: any user
  std::string executable;    // path; empty: any program of that user
};

struct Policy {
  Bytes threshold = gib(1);  // unreserved use up to this is no finding; zero: any process is one
  Bytes tolerance = mib(64);
  Duration clear_after = std::chrono::seconds(2);  // a finding unseen this long has ended
  Duration gone_patience = std::chrono::seconds(5);
  // How long a process must look unlimited before it is a finding. A process that libgpurota limits
  // may look unlimited briefly, when it starts or ends between two readings of /proc and the
  // driver's list.
  Duration silent_patience = std::chrono::seconds(3);
  Duration unused_after{};  // zero: an unused lease is no finding
  Duration stop_grace = std::chrono::seconds(10);
  Duration unused_grace = std::chrono::minutes(10);  // from the finding to the release
  bool may_release = true;                           // false for a moment after the daemon's start
  std::vector<Ignored> ignored;
  // The action for a finding of this kind that is charged to this user (empty: unknown user).
  std::function<Action(FindingKind, std::optional<uid_t>)> action;
};

// One thing that is wrong, from when it was first seen.
struct Finding {
  FindingId id;
  FindingKind kind = FindingKind::kUnreservedUse;
  GpuUuid gpu;
  std::optional<uid_t> uid;      // the user whom the finding is about; empty: unknown
  std::optional<LeaseId> lease;  // kForeignUse: the lease that has the GPU; else the lease itself
  // kUnreservedUse, kForeignUse: a lease whose command may have started these containers.
  std::optional<LeaseId> perhaps_of;
  TimePoint since{};          // kUnused: the last use
  std::optional<Bytes> used;  // by these processes, where known; empty: known for none
  std::vector<SeenProcess> processes;
  Action action = Action::kReport;
  bool container = false;  // one of the processes is in a container
};

// A step to carry out. Each finding begins once and ends once.
struct Step {
  enum class What { kBegun, kEnded, kTerminate, kKill, kRelease };
  What what = What::kBegun;
  Finding finding;
  // kTerminate, kKill: the processes to signal. Check each start time first.
  std::vector<SeenProcess> targets;
};

// "unreserved_use", …: stable, for protocols, logs and the configuration.
const char* to_string(FindingKind kind);
std::optional<FindingKind> parse_finding_kind(std::string_view word);
// Whether the lease itself causes such a finding, not other processes beside it.
bool is_of_its_lease(FindingKind kind);
const char* to_string(Action action);

}  // namespace gpurota::watch
