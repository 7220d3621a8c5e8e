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
  const std::lock_guard lock(mutex_);
  leases_[lease.id] = lease;
  ++saves_;
  return {};
}

Result<void> MemoryStore::remove_lease(LeaseId id) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  const std::lock_guard lock(mutex_);
  leases_.erase(id);
  return {};
}

Result<LeaseId> MemoryStore::next_lease_id() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return LeaseId{next_id_++};
}

Result<std::vector<ports::StoredRequest>> MemoryStore::load_requests() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  std::vector<ports::StoredRequest> all;
  for (const auto& [id, request] : requests_) all.push_back(request);
  return all;
}

Result<void> MemoryStore::save_request(const ports::StoredRequest& request) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  requests_[request.id] = request;
  return {};
}

Result<void> MemoryStore::remove_request(RequestId id) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  requests_.erase(id);
  return {};
}

Result<RequestId> MemoryStore::next_request_id() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return RequestId{next_request_++};
}

Result<void> MemoryStore::grant_request(RequestId id, const ports::StoredLease& lease) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  requests_.erase(id);
  return save_lease(lease);
}

Result<std::vector<ports::StoredGpuState>> MemoryStore::load_gpus() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  std::vector<ports::StoredGpuState> all;
  for (const auto& [uuid, gpu] : gpus_) all.push_back(gpu);
  return all;
}

Result<void> MemoryStore::save_gpu(const ports::StoredGpuState& gpu) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  gpus_[gpu.uuid] = gpu;
  return {};
}

}  // namespace gpurota::testing
