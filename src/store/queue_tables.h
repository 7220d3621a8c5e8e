// Requests, the stored state of GPUs, and since when the watch has seen its findings. Used by
// SqliteStore only.
#pragma once

#include "ports/store.h"
#include "store/database.h"

#include <vector>

namespace gpurota::store {

class QueueTables {
 public:
  // `database` must outlive this object.
  explicit QueueTables(Database& database) : database_(database) {}

  Result<std::vector<ports::StoredRequest>> load_requests();
  Result<void> save_request(const ports::StoredRequest& request);
  Result<void> remove_request(RequestId id);
  Result<std::vector<ports::StoredGpuState>> load_gpus();
  Result<void> save_gpu(const ports::StoredGpuState& gpu);

 private:
  Result<void> load_parts(ports::StoredRequest& request);
  Result<std::vector<ports::StoredAge>> load_ages(const GpuUuid& gpu);
  Result<void> save_ages(const ports::StoredGpuState& gpu);

  Database& database_;
};

}  // namespace gpurota::store
