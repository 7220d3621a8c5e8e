// What the daemon remembers of what was: events, and who used how much. SQLite in production.
//
// Called on the state thread. Written in batches, each one transaction (as in ports/store.h): what a kill -9
// would take with it of the last moment its caller keeps elsewhere (daemon/event_spill.h).
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "core/time.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::ports {

struct StoredEvent {
  std::uint64_t id = 0;  // grows
  WallTime time;
  std::string type;  // the word of the control protocol
  std::optional<LeaseId> lease;
  std::optional<int> gpu_index;  // as it was then
  GpuUuid gpu;                   // empty: of no GPU
  std::optional<uid_t> uid;      // on whose account
  std::string finding;           // its kind, or empty
  std::optional<Bytes> bytes;
  std::uint64_t count = 1;
  std::string message;  // for everybody
  std::vector<pid_t> pids;
  std::string detail;  // for its user and administrators; foreign bytes
  bool operator==(const StoredEvent&) const = default;
};

// What one lease had of one GPU.
struct StoredUsage {
  LeaseId lease;
  GpuUuid gpu;
  uid_t uid = 0;
  std::string group;  // primary group of the user, then
  std::string kind;
  std::string note;  // foreign bytes
  WallTime since;
  WallTime until;     // counted so far
  bool open = false;  // goes on
  std::uint64_t gpu_ms = 0;
  std::uint64_t mib_ms = 0;
  bool operator==(const StoredUsage&) const = default;
};

enum class UsageBy { kUser, kGroup, kNote, kGpu, kKind };

// A sum over what one user did under one key (kUser: the key is empty).
struct UsageSum {
  uid_t uid = 0;
  std::string key;
  std::uint64_t leases = 0;
  std::uint64_t gpu_ms = 0;
  std::uint64_t mib_ms = 0;
  bool operator==(const UsageSum&) const = default;
};

struct HistoryBatch {
  std::vector<StoredEvent> events;
  std::vector<std::uint64_t> forgotten;  // ids of events
  std::vector<StoredUsage> usage;        // each replaces what was known of its lease and GPU
  bool empty() const { return events.empty() && forgotten.empty() && usage.empty(); }
};

class History {
 public:
  virtual ~History() = default;

  virtual Result<void> save(const HistoryBatch& batch) = 0;
  virtual Result<std::vector<StoredEvent>> load_events() = 0;  // oldest first
  virtual Result<std::vector<StoredUsage>> load_open_usage() = 0;
  // Usage, a piece at a time: all rows of the next leases behind `after`, in the order of their numbers, about `most` rows. Empty:
  // there are no more.
  virtual Result<std::vector<StoredUsage>> read_usage(LeaseId after, std::size_t most) = 0;
  // Of one user, by kind of lease; the keys are kinds.
  virtual Result<std::vector<UsageSum>> sum_usage_of(uid_t uid, WallTime since, WallTime until) = 0;
  // Forgets what ended before.
  virtual Result<void> prune_usage(WallTime before) = 0;
};

}  // namespace gpurota::ports
