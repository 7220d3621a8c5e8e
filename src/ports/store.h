// What outlives the daemon. SQLite in production (also `:memory:` in tests).
//
// Called on the state thread; each call is one durable transaction when it returns success.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "core/time.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::ports {

struct StoredGpu {
  GpuUuid uuid;
  std::optional<Bytes> limit;  // empty: exclusive
  std::optional<Bytes> soft_limit;
  bool operator==(const StoredGpu&) const = default;
};

// A process by what outlives pid reuse: its pid and its start time (clock ticks since boot), which
// are only meaningful within one boot.
struct StoredProcess {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  bool operator==(const StoredProcess&) const = default;
};

struct StoredLease {
  LeaseId id;
  uid_t uid = 0;
  std::string kind;  // "run"
  std::string token;
  WallTime since;
  std::string note;                  // foreign bytes, kept exact
  std::vector<std::string> command;  // foreign bytes, kept exact
  std::vector<StoredGpu> gpus;
  std::optional<StoredProcess> holder;  // the CLI
  std::optional<StoredProcess> main;    // the command's first process
  std::string cgroup;                   // absolute path, or empty
  bool subreaper = false;               // what the holder said of itself at the start
  std::string boot_id;                  // of the boot in which holder and main are meaningful
  bool ending = false;
  bool operator==(const StoredLease&) const = default;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::vector<StoredLease>> load_leases() = 0;
  virtual Result<void> save_lease(const StoredLease& lease) = 0;  // inserts or replaces
  virtual Result<void> remove_lease(LeaseId id) = 0;
  // Never returns the same id twice in the life of the store, removed leases included.
  virtual Result<LeaseId> next_lease_id() = 0;
};

}  // namespace gpurota::ports
