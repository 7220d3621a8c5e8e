// Adds up each lease's use of each GPU while the lease lasts. Pure bookkeeping, state thread.
//
// Three things are integrated over time: the part of the GPU that the lease holds (a slice counts
// as its part of the memory), the memory that its processes really used, and, where it is known,
// how busy they kept the GPU.
#pragma once

#include "core/gpu.h"
#include "core/lease.h"
#include "core/time.h"
#include "ports/history.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::daemon {

struct Now {
  TimePoint mono;
  WallTime wall;
};

class UsageBook {
 public:
  // Call when the lease has been made or changed: from now on, usage is counted according to its
  // present state. A new lease is counted from its beginning. While the size of its GPU is unknown,
  // counting waits.
  void update(const Lease& lease, const std::string& group, const std::vector<GpuInfo>& gpus,
              Now now);
  // Continues usage that was found at a restart. The time without a daemon is counted, too.
  void resume(const ports::StoredUsage& usage, const Lease& lease, const std::vector<GpuInfo>& gpus,
              Now now);
  // From here on the lease uses this much.
  void on_use(LeaseId lease, const GpuUuid& gpu, Bytes used, Now now);
  // From here on the leases on this GPU keep it this busy, in percent. If `loads` does not name a
  // lease, the load of that lease is unknown; if `loads` is empty, all are unknown.
  void on_loads(const GpuUuid& gpu, const std::optional<std::map<LeaseId, int>>& loads, Now now);
  void close(LeaseId lease, Now now);

  // Counts everything up to now, and returns the usage that has changed since the last call.
  std::vector<ports::StoredUsage> take(Now now);
  // Counts everything up to now, and returns the usage that has not ended.
  std::vector<ports::StoredUsage> open(Now now);
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    ports::StoredUsage usage;
    std::optional<double> part;  // of the GPU; empty: not known
    Bytes used;
    TimePoint at{};     // counted up to here
    double gpu_ms = 0;  // with fractions of a millisecond
    double mib_ms = 0;
    std::optional<int> load;  // percent
    double busy_ms = 0;
    double idle_ms = 0;
  };
  void count(Entry& entry, Now now);

  std::map<std::pair<LeaseId, GpuUuid>, Entry> entries_;
  std::vector<ports::StoredUsage> closed_;
};

}  // namespace gpurota::daemon
