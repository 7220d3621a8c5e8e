// The store for the state thread: no call waits for the disk.
//
// A change is written at once to the database's log, in the kernel's memory, and survives a kill
// -9. A full disk is an error of the call, as usual. ports::Durability reports when the change is
// on the disk (disk_waits.h). While the store is being settled, calls of clients wait
// (ControlServer). Changes that no client asks for, such as the end of a lease whose program has
// ended, are kept in memory meanwhile.
#pragma once

#include "daemon/history/disk_waits.h"

#include <cstdint>
#include <vector>

namespace gpurota::daemon {

class SteadyStore final : public ports::Store, public ports::History, public ports::ProgramStore {
 public:
  // Both must outlive the SteadyStore. Nothing else may use `store` from here on.
  SteadyStore(ports::EventLoop& loop, store::SqliteStore& store)
      : store_(store), waits_(loop, store) {}

  ports::Durability& durability() { return waits_; }
  // Call about once a minute.
  void settle() { waits_.settle(); }

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
  Result<void> save_jobs(const std::vector<ports::StoredJob>& jobs) override;
  Result<void> save_items(std::uint64_t job, const std::vector<ports::StoredItem>& items,
                          bool anew) override;
  Result<std::vector<ports::StoredFiller>> load_fillers() override { return store_.load_fillers(); }
  Result<void> save_filler(const ports::StoredFiller& filler) override;
  Result<void> remove_program(ports::ProgramKind kind, std::uint64_t id) override;
  Result<std::uint64_t> next_program_id(ports::ProgramKind kind) override;

  Result<void> save(const ports::HistoryBatch& batch) override;
  Result<std::vector<ports::StoredEvent>> load_events() override { return store_.load_events(); }
  Result<std::vector<ports::StoredUsage>> load_open_usage() override;
  Result<std::vector<ports::StoredPastBooking>> load_past_bookings() override {
    return store_.load_past_bookings();
  }
  // read_usage() and the calls below return kUnavailable while the store is not open.
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

  store::SqliteStore& store_;
  DiskWaits waits_;
};

}  // namespace gpurota::daemon
