// Jobs: another part of sqlite_store.cpp.
#include "store/columns.h"
#include "store/sqlite_store.h"

namespace gpurota::store {

Result<std::vector<ports::StoredJob>> SqliteStore::load_jobs() {
  GPUROTA_ASSIGN_OR_RETURN(
      auto rows, database_.prepare("SELECT id, uid, user, spec, state, keeper_pid, keeper_start,"
                                   " boot_id FROM job ORDER BY id"));
  std::vector<ports::StoredJob> jobs;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return jobs;
    ports::StoredJob job;
    job.id = from_integer(rows.integer(0));
    job.uid = static_cast<uid_t>(rows.integer(1));
    job.user = rows.bytes(2);
    job.spec = rows.bytes(3);
    job.state = rows.bytes(4);
    job.keeper = optional_process_at(rows, 5);
    job.boot_id = rows.bytes(7);
    jobs.push_back(std::move(job));
  }
}

Result<void> SqliteStore::save_job(const ports::StoredJob& job) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto statement,
      database_.prepare("INSERT OR REPLACE INTO job (id, uid, user, spec, state, keeper_pid,"
                        " keeper_start, boot_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  statement.bind(to_integer(job.id)).bind(job.uid).bind_blob(job.user).bind_blob(job.spec);
  bind_process(statement.bind_blob(job.state), job.keeper);
  return statement.bind_text(job.boot_id).run();
}

Result<void> SqliteStore::save_jobs(const std::vector<ports::StoredJob>& jobs) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  for (const ports::StoredJob& job : jobs) GPUROTA_TRY(save_job(job));
  return transaction.commit();
}

Result<void> SqliteStore::remove_job(std::uint64_t id) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database_.prepare("DELETE FROM job WHERE id = ?"));
  return statement.bind(to_integer(id)).run();
}

Result<std::uint64_t> SqliteStore::next_job_id() { return next_of("job"); }

}  // namespace gpurota::store
