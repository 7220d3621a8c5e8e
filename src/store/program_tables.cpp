#include "store/program_tables.h"

#include "store/columns.h"
#include "store/sequences.h"

#include <fmt/format.h>

namespace gpurota::store {

Result<std::vector<ports::StoredJob>> ProgramTables::load_jobs() {
  GPUROTA_ASSIGN_OR_RETURN(auto rows,
                           database_.prepare("SELECT id, uid, user, spec, state, boot_id FROM job"
                                             " ORDER BY id"));
  std::vector<ports::StoredJob> jobs;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) break;
    ports::StoredJob job;
    job.id = from_integer(rows.integer(0));
    job.uid = static_cast<uid_t>(rows.integer(1));
    job.user = rows.bytes(2);
    job.spec = rows.bytes(3);
    job.state = rows.bytes(4);
    job.boot_id = rows.bytes(5);
    jobs.push_back(std::move(job));
  }
  GPUROTA_ASSIGN_OR_RETURN(auto items,
                           database_.prepare("SELECT job, item, state, boot_id FROM job_item"
                                             " ORDER BY job, item"));
  for (auto job = jobs.begin();;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, items.step());
    if (!row) return jobs;
    const std::uint64_t id = from_integer(items.integer(0));
    while (job != jobs.end() && job->id < id) ++job;
    if (job == jobs.end() || job->id != id) continue;
    job->items.push_back(
        {items.integer(1), std::string(items.bytes(2)), std::string(items.bytes(3))});
  }
}

Result<void> ProgramTables::save_job(const ports::StoredJob& job) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto statement,
      database_.prepare("INSERT OR REPLACE INTO job (id, uid, user, spec, state, boot_id)"
                        " VALUES (?, ?, ?, ?, ?, ?)"));
  statement.bind(to_integer(job.id)).bind(job.uid).bind_blob(job.user).bind_blob(job.spec);
  return statement.bind_blob(job.state).bind_text(job.boot_id).run();
}

Result<void> ProgramTables::save_jobs(const std::vector<ports::StoredJob>& jobs) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  for (const ports::StoredJob& job : jobs) GPUROTA_TRY(save_job(job));
  return transaction.commit();
}

Result<void> ProgramTables::save_items(std::uint64_t job,
                                       const std::vector<ports::StoredItem>& items, bool anew) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  if (anew) GPUROTA_TRY(remove_items(job));
  for (const ports::StoredItem& item : items) {
    GPUROTA_ASSIGN_OR_RETURN(auto statement,
                             database_.prepare("INSERT OR REPLACE INTO job_item (job, item, state,"
                                               " boot_id) VALUES (?, ?, ?, ?)"));
    statement.bind(to_integer(job)).bind(item.index).bind_blob(item.state);
    GPUROTA_TRY(statement.bind_text(item.boot_id).run());
  }
  return transaction.commit();
}

Result<void> ProgramTables::remove_items(std::uint64_t job) {
  GPUROTA_ASSIGN_OR_RETURN(auto rows, database_.prepare("DELETE FROM job_item WHERE job = ?"));
  return rows.bind(to_integer(job)).run();
}

Result<std::vector<ports::StoredFiller>> ProgramTables::load_fillers() {
  GPUROTA_ASSIGN_OR_RETURN(
      auto rows, database_.prepare("SELECT id, uid, user, spec, gpus, instances, memory_bytes,"
                                   " memory_percent, idle_ms, grace_ms, state, places, evicts,"
                                   " moved_out, of_free, paused_by FROM filler ORDER BY id"));
  std::vector<ports::StoredFiller> fillers;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return fillers;
    ports::StoredFiller filler;
    filler.id = from_integer(rows.integer(0));
    filler.uid = static_cast<uid_t>(rows.integer(1));
    filler.user = rows.bytes(2);
    filler.spec = rows.bytes(3);
    filler.gpus = split_gpus(rows.bytes(4));
    if (!rows.is_null(5)) filler.instances = static_cast<int>(rows.integer(5));
    if (!rows.is_null(6)) {
      filler.memory =
          SizeSpec{Bytes(from_integer(rows.integer(6))), static_cast<int>(rows.integer(7))};
    }
    filler.idle_after = std::chrono::milliseconds(rows.integer(8));
    filler.grace = std::chrono::milliseconds(rows.integer(9));
    filler.state = rows.bytes(10);
    filler.places = split_gpus(rows.bytes(11));
    filler.evicts = rows.integer(12) != 0;
    filler.out = split_gpus(rows.bytes(13));
    if (!rows.is_null(14)) filler.of_free = static_cast<int>(rows.integer(14));
    filler.paused_by = rows.bytes(15);
    fillers.push_back(std::move(filler));
  }
}

Result<void> ProgramTables::save_filler(const ports::StoredFiller& filler) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto statement,
      database_.prepare("INSERT OR REPLACE INTO filler (id, uid, user, spec, gpus, instances,"
                        " memory_bytes, memory_percent, idle_ms, grace_ms, state, places,"
                        " evicts, moved_out, of_free, paused_by)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  statement.bind(to_integer(filler.id)).bind(filler.uid).bind_blob(filler.user);
  statement.bind_blob(filler.spec).bind_text(join_gpus(filler.gpus));
  statement.bind(filler.instances ? Integer(*filler.instances) : Integer());
  statement.bind(filler.memory ? Integer(to_integer(filler.memory->bytes.count())) : Integer());
  statement.bind(filler.memory ? Integer(filler.memory->percent) : Integer());
  statement.bind(filler.idle_after.count()).bind(filler.grace.count());
  statement.bind_text(filler.state).bind_text(join_gpus(filler.places));
  statement.bind(filler.evicts ? 1 : 0).bind_text(join_gpus(filler.out));
  statement.bind(filler.of_free ? Integer(*filler.of_free) : Integer());
  return statement.bind_blob(filler.paused_by).run();
}

Result<void> ProgramTables::remove_program(ports::ProgramKind kind, std::uint64_t id) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  if (kind == ports::ProgramKind::kJob) GPUROTA_TRY(remove_items(id));
  const std::string statement = fmt::format("DELETE FROM {} WHERE id = ?", to_string(kind));
  GPUROTA_ASSIGN_OR_RETURN(auto row, database_.prepare(statement.c_str()));
  GPUROTA_TRY(row.bind(to_integer(id)).run());
  return transaction.commit();
}

Result<std::uint64_t> ProgramTables::next_program_id(ports::ProgramKind kind) {
  return next_number(database_, to_string(kind));
}

}  // namespace gpurota::store
