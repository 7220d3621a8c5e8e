// Requests, and what is known of GPUs. Used by SqliteStore only.
#pragma once

#include "ports/store.h"
#include "store/database.h"

#include <vector>

namespace gpurota::store {

class QueueTables {
 public:
  // Outlives it.
  explicit QueueTables(Database& database) : database_(database) {}

  Result<std::vector<ports::StoredRequest>> load_requests();
  Result<void> save_request(const ports::StoredRequest& request);
  Result<void> remove_request(RequestId id);
  Result<std::vector<ports::StoredGpuState>> load_gpus();
  Result<void> save_gpu(const ports::StoredGpuState& gpu);

 private:
  Result<void> load_parts(ports::StoredRequest& request);

  Database& database_;
};

}  // namespace gpurota::store
