// Records refusals of tenants, and that their work was held back. State thread only.
#pragma once

#include "daemon/history/recorder.h"
#include "daemon/leases/lease_tables.h"

#include <cstdint>
#include <string>
#include <utility>

namespace gpurota::daemon {

class TenantRecords {
 public:
  // Both must outlive the TenantRecords.
  TenantRecords(const LeaseTables& tables, Recorder& recorder)
      : tables_(tables), recorder_(recorder) {}

  // A tenant of the lease asked for memory, and was refused.
  void on_refusal(LeaseId lease, pid_t pid, const GpuUuid& gpu, Bytes asked) {
    const LeaseEntry* const entry = tables_.find(lease);
    if (entry) recorder_.on_refusal(lease, entry->lease.uid, pid, gpu, asked);
  }
  // A process was refused, because its lease or the lease's user has as many processes as allowed.
  // `why` says how many that is.
  void on_too_many_processes(const Lease& lease, pid_t pid, const std::string& why) {
    recorder_.on_too_many_processes(lease.id, lease.uid, pid, why);
  }
  // Work of the lease was held back for long. `what` says so, for everybody.
  void on_held_back(const Lease& lease, const std::string& what) {
    Recorder::Event event;
    event.type = proto::EventType::kWorkHeldBack;
    event.lease = lease.id;
    if (lease.gpus.size() == 1) event.gpu = lease.gpus.front().uuid;
    event.uid = lease.uid;
    event.message = what;
    recorder_.record(std::move(event));
  }

  // Libraries have refused `count` allocations. The count is smaller than the number of refusals by
  // the daemon, which is asked more often.
  void on_refused_allocations(std::uint64_t count) { refused_ += count; }
  // Since the daemon started.
  std::uint64_t refused_allocations() const { return refused_; }

 private:
  const LeaseTables& tables_;
  Recorder& recorder_;
  std::uint64_t refused_ = 0;
};

}  // namespace gpurota::daemon
