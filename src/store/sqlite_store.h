// State that outlives the daemon, in an SQLite database below the state directory. See
// ports/store.h.
//
//   STATE_DIR/               0700
//     gpurota.db             0600, with gpurota.db-wal beside it while in use
//     store.mark             shows that there is a database: store_mark.h
//     state.lock             held by the daemon that uses the directory
//
// The *_tables.h files know the content of the tables. SqliteStore manages the database with these
// tables, from opening to closing.
#pragma once

#include "base/fd.h"
#include "ports/history.h"
#include "ports/program_store.h"
#include "ports/store.h"
#include "store/database.h"
#include "store/history_tables.h"
#include "store/lease_tables.h"
#include "store/log_file.h"
#include "store/program_tables.h"
#include "store/queue_tables.h"
#include "store/store_mark.h"

#include <chrono>
#include <memory>
#include <string>

namespace gpurota::store {

class SqliteStore final : public ports::Store, public ports::History, public ports::ProgramStore {
 public:
  // Makes the directory if it does not exist. kInvalid if another gpurotad uses it or a newer
  // gpurota wrote it; kDenied if others could write to it; kIo if the database is damaged, missing
  // although there was one, or older than it was. The message says what to do, and nothing was
  // changed.
  static Result<std::unique_ptr<SqliteStore>> open(
      const std::string& state_dir,
      std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  // Nothing on disk: for tests.
  static Result<std::unique_ptr<SqliteStore>> open_in_memory();

  // A change that has returned success is in the database, and a kill -9 does not lose it; sync()
  // waits until a loss of power does not lose it either. sync() may be called on a different thread
  // from the other functions, by one thread at a time. After a failure only settle() helps.
  Result<void> sync() { return log_.sync(); }
  // Brings what was written since the last call into the database file. Call now and then (each
  // minute): losing the log then loses only what was written since, and the loss is noticed. Does
  // nothing if nothing was written. Waits for the disk a few times; no other function may be called
  // meanwhile.
  Result<void> settle();
  bool needs_settling() const;

  // The last number of each kind that was given.
  struct Numbers {
    std::uint64_t lease = 0, request = 0, job = 0, filler = 0;
  };
  Result<Numbers> numbers();

  Result<std::vector<ports::StoredLease>> load_leases() override { return leases_.load(); }
  Result<void> save_lease(const ports::StoredLease& lease) override;
  Result<void> remove_lease(LeaseId id) override { return leases_.remove(id); }
  Result<LeaseId> next_lease_id() override;
  Result<std::vector<ports::StoredRequest>> load_requests() override {
    return queue_.load_requests();
  }
  Result<void> save_request(const ports::StoredRequest& request) override {
    return queue_.save_request(request);
  }
  Result<void> remove_request(RequestId id) override { return queue_.remove_request(id); }
  Result<RequestId> next_request_id() override;
  Result<void> grant_request(RequestId id, const ports::StoredLease& lease) override;
  Result<std::vector<ports::StoredGpuState>> load_gpus() override { return queue_.load_gpus(); }
  Result<void> save_gpu(const ports::StoredGpuState& gpu) override { return queue_.save_gpu(gpu); }

  Result<std::vector<ports::StoredJob>> load_jobs() override { return programs_.load_jobs(); }
  Result<void> save_jobs(const std::vector<ports::StoredJob>& jobs) override {
    return programs_.save_jobs(jobs);
  }
  Result<void> save_items(std::uint64_t job, const std::vector<ports::StoredItem>& items,
                          bool anew) override {
    return programs_.save_items(job, items, anew);
  }
  Result<std::vector<ports::StoredFiller>> load_fillers() override {
    return programs_.load_fillers();
  }
  Result<void> save_filler(const ports::StoredFiller& filler) override {
    return programs_.save_filler(filler);
  }
  Result<void> remove_program(ports::ProgramKind kind, std::uint64_t id) override {
    return programs_.remove_program(kind, id);
  }
  Result<std::uint64_t> next_program_id(ports::ProgramKind kind) override {
    return programs_.next_program_id(kind);
  }

  Result<void> save(const ports::HistoryBatch& batch) override { return history_.save(batch); }
  Result<std::vector<ports::StoredEvent>> load_events() override { return history_.load_events(); }
  Result<std::vector<ports::StoredUsage>> load_open_usage() override {
    return history_.load_open_usage();
  }
  Result<std::vector<ports::StoredPastBooking>> load_past_bookings() override {
    return history_.load_past_bookings();
  }
  Result<std::vector<ports::StoredUsage>> read_usage(LeaseId after, std::size_t most) override {
    return history_.read_usage(after, most);
  }
  Result<std::vector<ports::UsageSum>> sum_usage_of(uid_t uid, WallTime since,
                                                    WallTime until) override {
    return history_.sum_usage_of(uid, since, until);
  }
  Result<std::size_t> count_usage(uid_t uid) override { return history_.count_usage(uid); }
  Result<ports::MergedUsage> merge_usage(const ports::UsageMerge& merge) override {
    return history_.merge_usage(merge);
  }
  Result<bool> prune_usage(WallTime before, std::size_t most) override {
    return history_.prune_usage(before, most);
  }

 private:
  SqliteStore(Fd lock, std::string state_dir, Database database)
      : lock_(std::move(lock)),
        state_dir_(std::move(state_dir)),
        database_(std::move(database)),
        log_(state_dir_.empty() ? "" : database_.path(), mark_path(state_dir_)) {
    database_.watch_commits([this](std::uint64_t frames) { log_.on_commit(frames); });
  }
  static Result<std::unique_ptr<SqliteStore>> make(Fd lock, const std::string& state_dir);

  Fd lock_;                // outlives database_
  std::string state_dir_;  // empty: in memory
  Database database_;
  LogFile log_;
  LeaseTables leases_{database_};
  QueueTables queue_{database_};
  ProgramTables programs_{database_};
  HistoryTables history_{database_};
  std::int64_t settled_changes_ = -1;  // Database::changes() at the last settle()
};

}  // namespace gpurota::store
