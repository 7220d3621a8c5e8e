// The stored history: events, and usage of each user. SQLite in production.
//
// Called on the state thread. Written in batches, each in one transaction (as in ports/store.h).
// Until a batch is written, the caller keeps its events elsewhere, because a kill -9 would lose
// them (daemon/history/event_spill.h).
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
  GpuUuid gpu;                   // empty: about no GPU
  std::optional<uid_t> uid;      // on whose account
  std::string finding;           // its kind, or empty
  std::optional<Bytes> bytes;
  std::uint64_t count = 1;
  std::string message;  // for everybody
  std::vector<pid_t> pids;
  std::string detail;  // for its user and administrators; foreign bytes
  bool operator==(const StoredEvent&) const = default;
};

// The use of one GPU by one lease.
struct StoredUsage {
  LeaseId lease;
  GpuUuid gpu;
  uid_t uid = 0;
  std::string group;  // the user's primary group at that time
  std::string kind;
  std::string note;  // foreign bytes
  WallTime since;
  WallTime until;     // counted so far
  bool open = false;  // still counting
  std::uint64_t gpu_ms = 0;
  std::uint64_t mib_ms = 0;
  // Counted only while the driver reports the lease's load. `busy_ms`: the GPU time in which the
  // lease's programs computed. `idle_ms`: the part of gpu_ms in which no program of the lease
  // computed.
  std::uint64_t busy_ms = 0;
  std::uint64_t idle_ms = 0;
  // `merged` and `merged_first` are 0 except in a merged row. `merged`: the number of leases in the
  // row, which all had this GPU. A lease with several GPUs is in several rows, but a sum over all
  // GPUs must count each lease once. `merged_first`: the number of leases that such a sum counts in
  // this row.
  std::uint64_t merged = 0;
  std::uint64_t merged_first = 0;
  bool operator==(const StoredUsage&) const = default;
};

enum class UsageBy { kUser, kGroup, kNote, kGpu, kKind };

// The sum of one user's usage under one key (kUser: the key is empty).
struct UsageSum {
  uid_t uid = 0;
  std::string key;
  std::uint64_t leases = 0;
  std::uint64_t gpu_ms = 0;
  std::uint64_t mib_ms = 0;
  bool operator==(const UsageSum&) const = default;
};

// The rows to merge: about `most` rows of this user's ended leases, from the first lease number
// above `after` on. If leases began and ended in the same span of time, their rows become one row
// for each GPU, kind and group.
struct UsageMerge {
  uid_t uid = 0;
  WallTime::duration span{};
  LeaseId after{};
  std::size_t most = 0;
  // The last lease that each reader of usage has read (read_usage): rows that a reader has read are
  // not merged with rows that it has not read yet.
  std::vector<LeaseId> readers;
};
struct MergedUsage {
  LeaseId upto{};         // the last lease that was examined
  bool over = false;      // no more leases follow
  std::size_t fewer = 0;  // rows
};

// A booking that has begun, and its share of the machine's time.
struct StoredPastBooking {
  RequestId id;
  LeaseId lease;  // the lease that it became
  uid_t uid = 0;
  WallTime from;
  WallTime until;
  // The booking's number of GPUs, in millionths. A slice or a MIG instance counts as a fraction of
  // a GPU.
  std::uint64_t gpu_millionths = 0;
  bool operator==(const StoredPastBooking&) const = default;
};

struct HistoryBatch {
  std::vector<StoredEvent> events;
  std::vector<std::uint64_t> forgotten;         // ids of events to remove
  std::vector<StoredUsage> usage;               // each replaces the row of its lease and GPU
  std::vector<StoredPastBooking> bookings{};    // each replaces its row
  std::vector<RequestId> forgotten_bookings{};  //
  bool empty() const {
    return events.empty() && forgotten.empty() && usage.empty() && bookings.empty() &&
           forgotten_bookings.empty();
  }
};

class History {
 public:
  virtual ~History() = default;

  virtual Result<void> save(const HistoryBatch& batch) = 0;
  virtual Result<std::vector<StoredEvent>> load_events() = 0;  // oldest first
  virtual Result<std::vector<StoredUsage>> load_open_usage() = 0;
  virtual Result<std::vector<StoredPastBooking>> load_past_bookings() = 0;
  // Usage, a piece at a time: all rows of the next leases after `after`, in the order of lease
  // numbers, about `most` rows. Empty: there are no more.
  virtual Result<std::vector<StoredUsage>> read_usage(LeaseId after, std::size_t most) = 0;
  // Sums of one user, by kind of lease; the keys are kinds.
  virtual Result<std::vector<UsageSum>> sum_usage_of(uid_t uid, WallTime since, WallTime until) = 0;
  // How many rows a user has.
  virtual Result<std::size_t> count_usage(uid_t uid) = 0;
  virtual Result<MergedUsage> merge_usage(const UsageMerge& merge) = 0;
  // Removes usage that ended before `before`, at most `most` rows. Returns whether there may be
  // more.
  virtual Result<bool> prune_usage(WallTime before, std::size_t most) = 0;
};

}  // namespace gpurota::ports
