// How much GPU memory has come back from the processes of leases. When a sample no longer lists a
// process, the memory that the process held in the sample before counts as recovered. State thread
// only.
#pragma once

#include "core/gpu.h"

#include <map>

namespace gpurota::daemon {

class RecoveredMemory {
 public:
  // One sample of one GPU. `of_leases`: the memory of the processes that belong to a lease.
  void on_sample(const GpuSample& sample, std::map<pid_t, Bytes> of_leases) {
    std::map<pid_t, Bytes>& last = last_[sample.uuid];
    for (const GpuProcess& process : sample.processes) last.erase(process.pid);
    for (const auto& [pid, bytes] : last) total_ += bytes;
    last = std::move(of_leases);
  }
  Bytes total() const { return total_; }

 private:
  std::map<GpuUuid, std::map<pid_t, Bytes>> last_;
  Bytes total_;
};

}  // namespace gpurota::daemon
