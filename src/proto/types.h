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

enum class GpuState { kUnknown, kAvailable, kInUse, kUnreservedUse, kError };
enum class LeaseKind { kUnknown, kRun };
enum class Share { kUnknown, kExclusive, kSlice };
enum class LeaseState { kUnknown, kActive, kEnding };
enum class Ended { kUnknown, kFinished, kReleased, kLost };
enum class ProcessType { kUnknown, kCompute, kGraphics };
enum class CheckStatus { kUnknown, kOk, kWarning, kError };

// The word of the interface for it: "in_use". Names of values that are not in the list: "unknown".
const char* to_string(GpuState state);
const char* to_string(LeaseKind kind);
const char* to_string(Share share);
const char* to_string(LeaseState state);
const char* to_string(Ended ended);
const char* to_string(ProcessType type);
const char* to_string(CheckStatus status);

// `Size` of the interface is SizeSpec of base/bytes.h.

struct Gpu {
  int index = 0;
  GpuUuid uuid;
  std::string name;
  std::string pci;
  std::optional<GpuUuid> parent;
  GpuState state = GpuState::kUnknown;
  Bytes memory_bytes;
  Bytes used_bytes;
  Bytes reserved_bytes;
  std::vector<LeaseId> leases;
  std::optional<std::string> detail;
  bool operator==(const Gpu&) const = default;
};

struct LeaseGpu {
  int index = 0;
  GpuUuid uuid;
  std::optional<Bytes> limit_bytes;
  std::optional<Bytes> soft_limit_bytes;
  Bytes used_bytes;
  Bytes granted_bytes;
  bool operator==(const LeaseGpu&) const = default;
};

struct Lease {
  LeaseId lease_id;
  LeaseKind kind = LeaseKind::kRun;
  Share share = Share::kUnknown;
  LeaseState state = LeaseState::kUnknown;
  uid_t uid = 0;
  std::string user;
  WallTime since;
  std::vector<LeaseGpu> gpus;
  int processes = 0;
  std::optional<pid_t> pid;
  std::optional<std::vector<std::string>> command;
  std::optional<std::string> note;
  bool operator==(const Lease&) const = default;
};

struct Process {
  pid_t pid = 0;
  std::optional<uid_t> uid;
  std::optional<std::string> user;
  int gpu = 0;
  GpuUuid gpu_uuid;
  ProcessType type = ProcessType::kUnknown;
  std::optional<Bytes> used_bytes;
  std::optional<LeaseId> lease_id;
  bool tenant = false;
  std::optional<std::vector<std::string>> command;
  std::optional<std::uint64_t> allocations;
  std::optional<std::uint64_t> refusals;
  std::optional<std::uint64_t> unhooked;
  bool operator==(const Process&) const = default;
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
