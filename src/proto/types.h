// The types of the control protocol as plain data: one struct for each `type` of
// dev.gpurota.varlink, field for field (interface_test.cpp holds the two together).
//
// Filled by the daemon, read by the clients; any thread. No JSON here: codec.h turns them into text
// and back. Where the interface has a string from a short list, there is an enum with `kUnknown`
// first, which is what a word from a newer peer becomes.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::proto {

enum class GpuState { kUnknown, kAvailable, kInUse, kUnreservedUse, kError, kDraining };
enum class LeaseKind { kUnknown, kRun, kReservation, kJob, kFiller, kPod, kSlurm };
enum class Share { kUnknown, kExclusive, kSlice, kSwap };
enum class LeaseState { kUnknown, kActive, kEnding, kExpired };
enum class Ended { kUnknown, kFinished, kReleased, kLost, kExpired };
enum class ProcessType { kUnknown, kCompute, kGraphics };
enum class FindingKind { kUnknown, kUnreservedUse, kForeignUse, kOverLimit, kUnused, kNotLimited };
enum class LibraryState { kUnknown, kAbsent, kSilent, kAway };
enum class FindingAction { kUnknown, kReport, kNotify, kStop };
enum class EventType {
  kUnknown,
  kLeaseMade,
  kLeaseStarted,
  kLeaseUpdated,
  kLeaseEnding,
  kLeaseGone,
  kRequestQueued,
  kRequestGranted,
  kRequestCancelled,
  kCallDenied,
  kGrantDenied,
  kFindingBegun,
  kFindingEnded,
  kProcessStopped,
  kGpuError,
  kGpuRecovered,
  kGpuDrained,
  kGpuUndrained,
  kConfigReloaded,
  kDaemonStarted,
  kDaemonStopped,
  kFillerStarted,
  kFillerYielded,
  kFillerEnded,
  kTurnTrouble,
  kGpuSet,
  kFillerResumed
};
enum class CheckStatus { kUnknown, kOk, kWarning, kError };

// The word of the interface for it: "in_use". Names of values that are not in the list: "unknown".
const char* to_string(GpuState state);
const char* to_string(LeaseKind kind);
const char* to_string(Share share);
const char* to_string(LeaseState state);
const char* to_string(Ended ended);
const char* to_string(ProcessType type);
const char* to_string(CheckStatus status);
const char* to_string(FindingKind kind);
const char* to_string(FindingAction action);
const char* to_string(EventType type);

// `Size` of the interface is SizeSpec of base/bytes.h.

struct Gpu {
  int index = 0;
  std::optional<std::string> label;
  GpuUuid uuid;
  std::string name;
  std::string pci;
  std::optional<GpuUuid> parent;
  GpuState state = GpuState::kUnknown;
  Bytes memory_bytes;
  Bytes used_bytes;
  Bytes reserved_bytes;
  std::vector<LeaseId> leases;
  Bytes unreserved_bytes;
  std::optional<RequestId> held_for;
  std::optional<WallTime> idle_since;
  std::optional<int> utilisation_percent;
  std::optional<std::string> detail;
  bool operator==(const Gpu&) const = default;
};

struct LeaseGpu {
  int index = 0;  // -1: the machine does not have the GPU any more
  std::optional<std::string> label;
  GpuUuid uuid;
  std::optional<Bytes> limit_bytes;
  std::optional<Bytes> soft_limit_bytes;
  Bytes used_bytes;
  Bytes granted_bytes;
  int processes = 0;
  std::optional<WallTime> unused_since;
  std::optional<Bytes> oversize_bytes{};
  bool operator==(const LeaseGpu&) const = default;
};

struct Lease {
  LeaseId lease_id;
  LeaseKind kind = LeaseKind::kRun;
  Share share = Share::kUnknown;
  LeaseState state = LeaseState::kUnknown;
  uid_t uid = 0;
  std::string user;
  std::optional<std::string> as_name;
  WallTime since;
  std::optional<WallTime> ends;
  std::vector<LeaseGpu> gpus;
  int processes = 0;
  std::optional<pid_t> pid;
  std::optional<std::vector<std::string>> command;
  std::optional<std::string> note;
  std::optional<std::string> model;
  std::optional<int> priority{};
  std::optional<std::int64_t> quantum_ms{};
  bool operator==(const Lease&) const = default;
};

struct Process {
  std::optional<pid_t> pid;
  std::optional<uid_t> uid;
  std::optional<std::string> user;
  int gpu = 0;
  std::optional<std::string> gpu_label;
  GpuUuid gpu_uuid;
  ProcessType type = ProcessType::kUnknown;
  std::optional<Bytes> used_bytes;
  std::optional<LeaseId> lease_id;
  bool tenant = false;
  std::optional<std::vector<std::string>> command;
  std::optional<std::uint64_t> allocations;
  std::optional<std::uint64_t> refusals;
  std::optional<std::uint64_t> unhooked;
  std::optional<std::vector<std::string>> unhooked_names;
  std::optional<LibraryState> library{};
  bool operator==(const Process&) const = default;
};

struct FoundProcess {
  pid_t pid = 0;
  std::optional<Bytes> used_bytes;
  std::optional<std::vector<std::string>> command;
  bool operator==(const FoundProcess&) const = default;
};

struct Finding {
  FindingKind kind = FindingKind::kUnknown;
  int gpu = 0;
  GpuUuid gpu_uuid;
  std::optional<LeaseId> lease_id;
  std::optional<uid_t> uid;
  std::optional<std::string> user;
  WallTime since;
  Bytes used_bytes;
  int process_count = 0;
  FindingAction action = FindingAction::kUnknown;
  bool container = false;
  std::optional<LeaseId> perhaps_of;
  std::optional<std::vector<FoundProcess>> processes;
  bool operator==(const Finding&) const = default;
};

struct Event {
  std::uint64_t event_id = 0;
  WallTime time;
  EventType type = EventType::kUnknown;
  std::optional<LeaseId> lease_id;
  std::optional<int> gpu;
  std::optional<GpuUuid> gpu_uuid;
  std::optional<uid_t> uid;
  std::optional<std::string> user;
  std::optional<FindingKind> finding;
  std::optional<Bytes> used_bytes;
  std::uint64_t count = 1;
  std::string message;
  std::optional<std::vector<pid_t>> pids;
  std::optional<std::string> detail;
  bool operator==(const Event&) const = default;
};

struct ReportRow {
  std::optional<std::string> key;
  std::uint64_t leases = 0;
  std::uint64_t gpu_seconds = 0;
  std::uint64_t mib_seconds = 0;
  bool operator==(const ReportRow&) const = default;
};

struct Variable {
  std::string name;
  std::string value;
  bool operator==(const Variable&) const = default;
};

struct Check {
  std::string name;
  CheckStatus status = CheckStatus::kUnknown;
  std::string summary;
  std::optional<std::string> remedy;
  bool operator==(const Check&) const = default;
};

}  // namespace gpurota::proto
