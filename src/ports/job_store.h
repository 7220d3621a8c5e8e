// Jobs as they outlive the daemon: the manifest, which nobody else writes. SQLite in production.
//
// Called on the state thread; each call is one transaction, which a kill -9 does not take once it has returned success; when
// the loss of power does not either, ports/durability.h tells.
#pragma once

#include "ports/store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::ports {

struct StoredJob {
  std::uint64_t id = 0;  // grows; never given twice
  uid_t uid = 0;
  std::string user;                 // its name when the job was added
  std::string spec, state;          // records of jobs/record.h
  std::optional<ProcessId> keeper;  // of the run that is on
  std::string boot_id;              // in which all that is meant
  bool operator==(const StoredJob&) const = default;
};

class JobStore {
 public:
  virtual ~JobStore() = default;

  virtual Result<std::vector<StoredJob>> load_jobs() = 0;   // in the order they were added
  virtual Result<void> save_job(const StoredJob& job) = 0;  // inserts or replaces
  virtual Result<void> save_jobs(const std::vector<StoredJob>& jobs) = 0;  // all or none
  virtual Result<void> remove_job(std::uint64_t id) = 0;
  virtual Result<std::uint64_t> next_job_id() = 0;
};

}  // namespace gpurota::ports
