#include "testing/memory_store.h"

namespace gpurota::testing {

Result<std::vector<ports::StoredLease>> MemoryStore::load_leases() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  std::vector<ports::StoredLease> all;
  for (const auto& [id, lease] : leases_) all.push_back(lease);
  return all;
}

Result<void> MemoryStore::save_lease(const ports::StoredLease& lease) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  leases_[lease.id] = lease;
  ++saves_;
  return {};
}

Result<void> MemoryStore::remove_lease(LeaseId id) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  leases_.erase(id);
  return {};
}

Result<LeaseId> MemoryStore::next_lease_id() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return LeaseId{next_id_++};
}

}  // namespace gpurota::testing
