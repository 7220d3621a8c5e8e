// Jobs and fillers. Used by SqliteStore only.
#pragma once

#include "ports/program_store.h"
#include "store/database.h"

#include <cstdint>
#include <vector>

namespace gpurota::store {

class ProgramTables {
 public:
  // `database` must outlive this object.
  explicit ProgramTables(Database& database) : database_(database) {}

  Result<std::vector<ports::StoredJob>> load_jobs();
  Result<void> save_items(std::uint64_t job, const std::vector<ports::StoredItem>& items,
                          bool anew);
  Result<void> save_jobs(const std::vector<ports::StoredJob>& jobs);
  Result<std::vector<ports::StoredFiller>> load_fillers();
  Result<void> save_filler(const ports::StoredFiller& filler);
  Result<void> remove_program(ports::ProgramKind kind, std::uint64_t id);
  Result<std::uint64_t> next_program_id(ports::ProgramKind kind);

 private:
  Result<void> save_job(const ports::StoredJob& job);
  Result<void> remove_items(std::uint64_t job);
  Database& database_;
};

}  // namespace gpurota::store
