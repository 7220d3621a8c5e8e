// Adds up each lease's use of each GPU while it goes on. Pure bookkeeping, state thread.
//
// The GPU's part that a lease holds, times how long (a slice counts as its part of the memory), and
// the memory that its processes really used, times how long; and, where it is known how busy they
// keep the GPU, how long that is.
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
  // A lease that was made, or has changed: counted from here on as it is now. One that is new here
  // is counted from its beginning. While it is not known how large its GPU is, it waits to be
  // counted.
  void update(const Lease& lease, const std::string& group, const std::vector<GpuInfo>& gpus,
              Now now);
  // Continues usage that was found at a restart from where it was counted to, the time without a
  // daemon included.
  void resume(const ports::StoredUsage& usage, const Lease& lease, const std::vector<GpuInfo>& gpus,
              Now now);
  // From here on the lease uses so much.
  void on_use(LeaseId lease, const GpuUuid& gpu, Bytes used, Now now);
  // From here on the leases on this GPU keep it so busy, in percent; those that are not named, or
  // all if there is nothing: it is not known.
  void on_loads(const GpuUuid& gpu, const std::optional<std::map<LeaseId, int>>& loads, Now now);
  void close(LeaseId lease, Now now);

  // Counts all up to now, and gives what has changed since it was last asked.
  std::vector<ports::StoredUsage> take(Now now);
  // Counts all up to now, and gives what goes on.
  std::vector<ports::StoredUsage> open(Now now);
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    ports::StoredUsage usage;
    std::optional<double> part;  // of the GPU; empty: not known
    Bytes used;
    TimePoint at{};     // counted up to here
    double gpu_ms = 0;  // what is not a whole millisecond yet included
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
