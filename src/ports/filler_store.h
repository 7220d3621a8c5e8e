// Fillers as they outlive the daemon. SQLite in production.
//
// Called on the state thread; each call is one transaction, which a kill -9 does not take once it has returned success; when
// the loss of power does not either, ports/durability.h tells.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::ports {

struct StoredFiller {
  std::uint64_t id = 0;  // grows; never given twice
  uid_t uid = 0;
  std::string user;           // its name when the filler was added
  std::string spec;           // name, command, workdir, environment: a record of jobs/record.h
  std::vector<GpuUuid> gpus;  // that it may use; empty: all
  std::optional<int> instances;
  std::optional<SizeSpec> memory;
  std::chrono::milliseconds idle_after{0};
  std::chrono::milliseconds grace{0};
  std::string state;            // active, paused, removed
  std::vector<GpuUuid> places;  // where it has ever been: their positions name its files
  bool evicts = false;          // moved out and back, rather than ended, where that can be
  std::vector<GpuUuid> out;     // of these it is moved out now
  bool operator==(const StoredFiller&) const = default;
};

class FillerStore {
 public:
  virtual ~FillerStore() = default;

  virtual Result<std::vector<StoredFiller>> load_fillers() = 0;      // in the order they were added
  virtual Result<void> save_filler(const StoredFiller& filler) = 0;  // inserts or replaces
  virtual Result<void> remove_filler(std::uint64_t id) = 0;
  virtual Result<std::uint64_t> next_filler_id() = 0;
};

}  // namespace gpurota::ports
