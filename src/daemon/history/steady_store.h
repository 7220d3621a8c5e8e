// The store as the state thread has it: it never waits for the disk.
//
// A change is written to the database's log at once, which is a write to the kernel's memory: it is there after a kill -9, and a full
// disk is an error of the call, as ever. A worker waits until the disk has it. What is changed while it waits is
// in its next wait, so that any number of changes cost one (group commit), and ports::Durability says how far the disk is.
//
// Each minute the log is brought into the database, which takes several waits during which nobody else may use that. Then the
// database is the worker's (is_open() is false), and what changes is kept in memory, in order, and written afterwards.
// Calls wait until it is over (ControlServer); so that is for what happens of itself: a lease whose program ended.
#pragma once

#include "ports/durability.h"
#include "ports/event_loop.h"
#include "store/sqlite_store.h"
#include "sys/worker.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

namespace gpurota::daemon {

class SteadyStore final : public ports::Store,
                          public ports::History,
                          public ports::ProgramStore,
                          public ports::Durability {
 public:
  // Both must outlive it. From here on nothing else uses `store`.
  SteadyStore(ports::EventLoop& loop, store::SqliteStore& store);
  // Waits for the disk: what was changed is in the store then.
  ~SteadyStore() override;

  // Call now and then (a minute): store::SqliteStore::settle, as soon as nothing else waits for the disk.
  void settle();

  std::uint64_t made() const override { return made_; }
  std::uint64_t told() const override { return told_; }
  bool is_open() const override { return !settling_; }
  void on_news(std::function<void(const News&)> listener) override {
    listener_ = std::move(listener);
  }

  Result<std::vector<ports::StoredLease>> load_leases() override { return store_.load_leases(); }
  Result<void> save_lease(const ports::StoredLease& lease) override;
  Result<void> remove_lease(LeaseId id) override;
  Result<LeaseId> next_lease_id() override;
  Result<std::vector<ports::StoredRequest>> load_requests() override;
  Result<void> save_request(const ports::StoredRequest& request) override;
  Result<void> remove_request(RequestId id) override;
  Result<RequestId> next_request_id() override;
  Result<void> grant_request(RequestId id, const ports::StoredLease& lease) override;
  Result<std::vector<ports::StoredGpuState>> load_gpus() override { return store_.load_gpus(); }
  Result<void> save_gpu(const ports::StoredGpuState& gpu) override;

  Result<std::vector<ports::StoredJob>> load_jobs() override { return store_.load_jobs(); }
  Result<void> save_job(const ports::StoredJob& job) override;
  Result<void> save_jobs(const std::vector<ports::StoredJob>& jobs) override;
  Result<std::vector<ports::StoredFiller>> load_fillers() override { return store_.load_fillers(); }
  Result<void> save_filler(const ports::StoredFiller& filler) override;
  Result<void> remove_program(ports::ProgramKind kind, std::uint64_t id) override;
  Result<std::uint64_t> next_program_id(ports::ProgramKind kind) override;

  Result<void> save(const ports::HistoryBatch& batch) override;
  Result<std::vector<ports::StoredEvent>> load_events() override { return store_.load_events(); }
  Result<std::vector<ports::StoredUsage>> load_open_usage() override;
  // kUnavailable while it is not open, as what follows.
  Result<std::vector<ports::StoredUsage>> read_usage(LeaseId after, std::size_t most) override;
  Result<std::vector<ports::UsageSum>> sum_usage_of(uid_t uid, WallTime since,
                                                    WallTime until) override;
  Result<std::size_t> count_usage(uid_t uid) override;
  Result<ports::MergedUsage> merge_usage(const ports::UsageMerge& merge) override;
  Result<bool> prune_usage(WallTime before, std::size_t most) override;

 private:
  template <class Call, class... Arguments>
  Result<void> change(Call call, const Arguments&... arguments);
  template <class Id, class... Arguments>
  Result<Id> next(std::uint64_t& last, Result<Id> (store::SqliteStore::*call)(Arguments...),
                  Arguments... arguments);
  Result<void> check_open() const;
  void on_change();
  // Writes what was kept while the database was not ours.
  Result<void> catch_up();
  void begin_soon();
  void begin();
  void run(bool settle);
  void finish(bool settled, std::uint64_t upto, const Result<void>& done);
  void tell(std::uint64_t upto, std::optional<Error> error);

  ports::EventLoop& loop_;
  store::SqliteStore& store_;
  std::function<void(const News&)> listener_;
  std::deque<std::function<Result<void>()>> kept_;
  store::SqliteStore::Numbers numbers_;  // while settling_
  std::uint64_t made_ = 0;
  std::uint64_t told_ = 0;
  bool posted_ = false;    // begin() is on its way
  bool settling_ = false;  // the database is the worker's
  bool wants_settling_ = false;
  std::shared_future<void> running_;  // valid while the worker is at work
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  sys::Worker worker_;
};

}  // namespace gpurota::daemon
