// A store without a disk, for tests of what happens when storing fails. Tests of the store itself
// and of restarts use SqliteStore.
#pragma once

#include "ports/store.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace gpurota::testing {

class MemoryStore final : public ports::Store {
 public:
  // From now on every call fails with this error; nullopt: calls succeed again.
  void set_failure(std::optional<Error> error) { failure_ = std::move(error); }
  const std::map<LeaseId, ports::StoredLease>& leases() const { return leases_; }
  // The current state of one lease; from any thread, even while the daemon's thread runs.
  ports::StoredLease lease_now(LeaseId id) const {
    const std::lock_guard lock(mutex_);
    return leases_.at(id);
  }
  const std::map<RequestId, ports::StoredRequest>& requests() const { return requests_; }
  int saves() const { return saves_; }

  Result<std::vector<ports::StoredLease>> load_leases() override;
  Result<void> save_lease(const ports::StoredLease& lease) override;
  Result<void> remove_lease(LeaseId id) override;
  Result<LeaseId> next_lease_id() override;
  Result<std::vector<ports::StoredRequest>> load_requests() override;
  Result<void> save_request(const ports::StoredRequest& request) override;
  Result<void> remove_request(RequestId id) override;
  Result<RequestId> next_request_id() override;
  Result<void> grant_request(RequestId id, const ports::StoredLease& lease) override;
  Result<std::vector<ports::StoredGpuState>> load_gpus() override;
  Result<void> save_gpu(const ports::StoredGpuState& gpu) override;

 private:
  mutable std::mutex mutex_;  // of leases_
  std::map<LeaseId, ports::StoredLease> leases_;
  std::map<RequestId, ports::StoredRequest> requests_;
  std::map<GpuUuid, ports::StoredGpuState> gpus_;
  std::uint64_t next_request_ = 1;
  std::optional<Error> failure_;
  std::uint64_t next_id_ = 1;
  int saves_ = 0;
};

}  // namespace gpurota::testing
