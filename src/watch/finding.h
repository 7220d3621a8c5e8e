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
  kForeignUse,     // a process on a GPU that somebody else has whole
  kOverLimit,      // a lease holds more than its limit
  kUnused,         // a lease holds a GPU and nothing runs there
  kNotLimited,     // libgpurota is loaded in a process to limit it, and does not
};

// In the order of severity: each does what those before it do.
enum class Action { kReport, kNotify, kStop };

// The state of libgpurota in a process that a limit is meant for.
enum class Library {
  kNotAsked,  // a tenant, or there is no limit
  kUnknown,   // it could not be told, or not in time
  kAbsent,    // not loaded there, or not told to limit it (an emptied environment)
  kSilent,    // loaded and told, but it has never said so to the daemon: the limit does not hold
  kAway,      // it was welcomed once, by a daemon before this one, and will be back
};

// One process on one GPU.
struct SeenProcess {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // 0: gone or hidden, so it can never be signalled
  std::optional<uid_t> uid;       // empty: gone or hidden
  bool gone = false;              // NVML lists a pid that no process has
  std::optional<LeaseId> lease;   // which it belongs to, wherever that lease's GPUs are
  // NVML's figure, or where it cannot say what libgpurota counts; empty: nobody can.
  std::optional<Bytes> used;
  Bytes imported{};  // of `used`: memory that another process has made
  bool graphics = false;
  bool tenant = false;  // connected through libgpurota, which holds it to its limit
  Library library = Library::kNotAsked;
  bool container = false;  // in a container's control group
  std::string executable;  // path as the kernel tells it, foreign bytes; empty: unknown
};

// A lease on the GPU of a reading.
struct SeenLease {
  LeaseId id;
  uid_t uid = 0;
  std::optional<Bytes> limit;  // empty: it has the GPU whole
  int gpus = 1;                // how many it has in all
  bool ending = false;
  // All processes of its user there are its own, whatever started them (a reservation).
  bool takes_all_of_user = false;
  // Its command talks to a container engine: what that starts is not in the lease.
  bool starts_containers = false;
  // A filler leaves when anybody else comes: its user's other processes are not in it, and it has
  // no claim.
  bool filler = false;
  // The charge of the lease there, of the GPU's memory: without what is evicted. Memory that it has
  // imported from another lease is in both charges, and once in Reading::counted_again.
  Bytes charge{};
  // Its memory is being moved, or its charge is not known yet.
  bool moving = false;
};

// Memory in use that no listed process has, beyond what is normal there: HiddenMemory reckons it.
struct Hidden {
  bool is_known = false;    // false: not computed
  Bytes bytes;              // zero: not told from noise
  bool is_leaving = false;  // much, and not for long: memory of an ended program, being freed
  bool in_use = false;      // much, and it stays: use without a lease

  bool operator==(const Hidden&) const = default;
};

// A sample of one GPU that answered, with the processes and leases there.
struct Reading {
  GpuUuid gpu;
  Bytes size;                 // of its memory
  std::optional<Bytes> used;  // everybody's together; empty where NVML cannot say
  std::vector<SeenProcess> processes;
  bool lists_processes = true;  // false: there may be more than `processes`, and nobody knows
  std::vector<SeenLease> leases;
  // The part of all charges together that counts memory again, as several leases have it.
  Bytes counted_again{};
  Hidden hidden{};
};

struct Ignored {
  std::optional<uid_t> uid;  // empty: whoever runs it
  std::string executable;    // path; empty: whatever that user runs
};

struct Policy {
  Bytes threshold = gib(1);  // unreserved use up to this is no finding; zero: any process is one
  Bytes tolerance = mib(64);
  Duration clear_after = std::chrono::seconds(2);  // how long it must be over to have ended
  Duration gone_patience = std::chrono::seconds(5);
  // How long a process must be seen not to be limited. No program of ours ever is: this is for what
  // two readings of /proc and a list of the driver's can make of processes that come and go.
  Duration silent_patience = std::chrono::seconds(3);
  Duration unused_after{};  // zero: an unused lease is no finding
  Duration stop_grace = std::chrono::seconds(10);
  Duration unused_grace = std::chrono::minutes(10);  // from the finding to the release
  bool may_release = true;                           // false for a moment after the daemon's start
  std::vector<Ignored> ignored;
  // The action for a finding on account of this user (empty: nobody knows who it is).
  std::function<Action(FindingKind, std::optional<uid_t>)> action;
};

// One thing that is not as it should be, from when it was first seen.
struct Finding {
  FindingId id;
  FindingKind kind = FindingKind::kUnreservedUse;
  GpuUuid gpu;
  std::optional<uid_t> uid;      // on whose account; empty: owner unknown
  std::optional<LeaseId> lease;  // kForeignUse: whose GPU it is; the others: which
  // kUnreservedUse, kForeignUse: a lease whose command may have started these containers.
  std::optional<LeaseId> perhaps_of;
  TimePoint since{};          // kUnused: the last use
  std::optional<Bytes> used;  // by these processes, as far as it is known; empty: of none of them
  std::vector<SeenProcess> processes;
  Action action = Action::kReport;
  bool container = false;  // one of the processes is in one
};

// A step to carry out. Each finding begins once and ends once.
struct Step {
  enum class What { kBegun, kEnded, kTerminate, kKill, kRelease };
  What what = What::kBegun;
  Finding finding;
  // kTerminate, kKill: these of its processes. Check the start time before signalling.
  std::vector<SeenProcess> targets;
};

// "unreserved_use", …: stable, for protocols, logs and the configuration.
const char* to_string(FindingKind kind);
std::optional<FindingKind> parse_finding_kind(std::string_view word);
// Whether the lease itself causes such a finding, and not others that affect it or run beside it.
bool is_of_its_lease(FindingKind kind);
const char* to_string(Action action);

}  // namespace gpurota::watch
