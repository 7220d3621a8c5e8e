// A store without a disk, for tests of what happens when storing fails. Tests of the store itself and
// of restarts use SqliteStore.
#pragma once

#include "ports/store.h"

#include <map>
#include <optional>
#include <vector>

namespace gpurota::testing {

class MemoryStore final : public ports::Store {
 public:
  // Every call fails with this until it is cleared by an empty one.
  void set_failure(std::optional<Error> error) { failure_ = std::move(error); }
  const std::map<LeaseId, ports::StoredLease>& leases() const { return leases_; }
  int saves() const { return saves_; }

  Result<std::vector<ports::StoredLease>> load_leases() override;
  Result<void> save_lease(const ports::StoredLease& lease) override;
  Result<void> remove_lease(LeaseId id) override;
  Result<LeaseId> next_lease_id() override;

 private:
  std::map<LeaseId, ports::StoredLease> leases_;
  std::optional<Error> failure_;
  std::uint64_t next_id_ = 1;
  int saves_ = 0;
};

}  // namespace gpurota::testing
