// Stores jobs and fillers, which outlive the daemon. Nobody but the daemon writes them. SQLite in
// production.
//
// Called on the state thread. Each call is one transaction. Once a call has returned success, a
// kill -9 does not lose its change; ports/durability.h reports when the change survives a loss of
// power, too.
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

enum class ProgramKind { kJob, kFiller };
inline const char* to_string(ProgramKind kind) {
  return kind == ProgramKind::kJob ? "job" : "filler";
}

struct StoredProgram {
  std::uint64_t id = 0;  // grows; never given twice within a kind
  uid_t uid = 0;
  std::string user;  // the user's name when the program was added
  std::string spec;  // name, command, workdir, environment, …: a record of jobs/record.h
  bool operator==(const StoredProgram&) const = default;
};

// An item of an array. An item has a stored row once the item has begun, or once the item has been
// cancelled before it began.
struct StoredItem {
  std::int64_t index = 0;
  std::string state;    // as that of a job
  std::string boot_id;  // the boot in which `state` was stored
  bool operator==(const StoredItem&) const = default;
};

struct StoredJob : StoredProgram {
  std::string state;    // a record of jobs/record.h
  std::string boot_id;  // the boot in which `state` was stored
  // In the order of their indexes. load_jobs() loads a job's items, too, but save_jobs() does not
  // save them: only save_items() does.
  std::vector<StoredItem> items{};
  bool operator==(const StoredJob&) const = default;
};

struct StoredFiller : StoredProgram {
  std::vector<GpuUuid> gpus;  // that it may use; empty: all
  std::optional<int> instances;
  std::optional<SizeSpec> memory;
  std::optional<int> of_free{};  // percent of the memory that is free when it starts
  std::chrono::milliseconds idle_after{0};
  std::chrono::milliseconds grace{0};
  std::string state;        // active, paused, removed
  std::string paused_by{};  // who paused it and why, if not the owner
  // All GPUs that the filler has ever run on. The number of a run contains the position of its GPU
  // in this list.
  std::vector<GpuUuid> places;
  bool evicts = false;       // evicted and restored, rather than ended, where possible
  std::vector<GpuUuid> out;  // GPUs from which it is evicted now
  bool operator==(const StoredFiller&) const = default;
};

class ProgramStore {
 public:
  virtual ~ProgramStore() = default;

  // In the order they were added.
  virtual Result<std::vector<StoredJob>> load_jobs() = 0;
  virtual Result<std::vector<StoredFiller>> load_fillers() = 0;
  // Inserts or replaces all of the jobs or none.
  virtual Result<void> save_jobs(const std::vector<StoredJob>& jobs) = 0;
  // `anew`: the items that the job already has are removed first.
  virtual Result<void> save_items(std::uint64_t job, const std::vector<StoredItem>& items,
                                  bool anew) = 0;
  virtual Result<void> save_filler(const StoredFiller& filler) = 0;

  // Removes the program and its items.
  virtual Result<void> remove_program(ProgramKind kind, std::uint64_t id) = 0;
  virtual Result<std::uint64_t> next_program_id(ProgramKind kind) = 0;
};

}  // namespace gpurota::ports
