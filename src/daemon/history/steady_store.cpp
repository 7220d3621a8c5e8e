#include "daemon/history/steady_store.h"

namespace gpurota::daemon {

using store::SqliteStore;

template <class Call, class... Arguments>
Result<void> SteadyStore::change(Call call, const Arguments&... arguments) {
  if (!waits_.is_open()) {
    waits_.keep([store = &store_, call, arguments...] { return (store->*call)(arguments...); });
    return {};
  }
  GPUROTA_TRY(waits_.catch_up());
  GPUROTA_TRY((store_.*call)(arguments...));
  waits_.on_change();
  return {};
}

// While only the worker may use the database, next() returns the number after `last` as the id. The
// database gives the same id later, when the kept call is made.
template <class Id, class... Arguments>
Result<Id> SteadyStore::next(std::uint64_t& last, Result<Id> (SqliteStore::*call)(Arguments...),
                             Arguments... arguments) {
  if (!waits_.is_open()) {
    waits_.keep([store = &store_, call, arguments...]() -> Result<void> {
      GPUROTA_TRY((store->*call)(arguments...));
      return {};
    });
    return Id{++last};
  }
  GPUROTA_TRY(waits_.catch_up());
  auto id = (store_.*call)(arguments...);
  if (id) waits_.on_change();
  return id;
}

Result<void> SteadyStore::save_lease(const ports::StoredLease& lease) {
  return change(&SqliteStore::save_lease, lease);
}
Result<void> SteadyStore::remove_lease(LeaseId id) {
  return change(&SqliteStore::remove_lease, id);
}
Result<LeaseId> SteadyStore::next_lease_id() {
  return next(waits_.numbers().lease, &SqliteStore::next_lease_id);
}
Result<std::vector<ports::StoredRequest>> SteadyStore::load_requests() {
  return store_.load_requests();
}
Result<void> SteadyStore::save_request(const ports::StoredRequest& request) {
  return change(&SqliteStore::save_request, request);
}
Result<void> SteadyStore::remove_request(RequestId id) {
  return change(&SqliteStore::remove_request, id);
}
Result<RequestId> SteadyStore::next_request_id() {
  return next(waits_.numbers().request, &SqliteStore::next_request_id);
}
Result<void> SteadyStore::grant_request(RequestId id, const ports::StoredLease& lease) {
  return change(&SqliteStore::grant_request, id, lease);
}
Result<void> SteadyStore::save_gpu(const ports::StoredGpuState& gpu) {
  return change(&SqliteStore::save_gpu, gpu);
}

Result<void> SteadyStore::save_jobs(const std::vector<ports::StoredJob>& jobs) {
  return change(&SqliteStore::save_jobs, jobs);
}
Result<void> SteadyStore::save_items(std::uint64_t job, const std::vector<ports::StoredItem>& items,
                                     bool anew) {
  return change(&SqliteStore::save_items, job, items, anew);
}
Result<void> SteadyStore::save_filler(const ports::StoredFiller& filler) {
  return change(&SqliteStore::save_filler, filler);
}
Result<void> SteadyStore::remove_program(ports::ProgramKind kind, std::uint64_t id) {
  return change(&SqliteStore::remove_program, kind, id);
}
Result<std::uint64_t> SteadyStore::next_program_id(ports::ProgramKind kind) {
  std::uint64_t& last =
      kind == ports::ProgramKind::kJob ? waits_.numbers().job : waits_.numbers().filler;
  return next(last, &SqliteStore::next_program_id, kind);
}

Result<void> SteadyStore::save(const ports::HistoryBatch& batch) {
  return change(&SqliteStore::save, batch);
}
Result<std::vector<ports::StoredUsage>> SteadyStore::load_open_usage() {
  return store_.load_open_usage();
}
Result<void> SteadyStore::check_open() const {
  if (waits_.is_open()) return {};
  return fail(Code::kUnavailable, "the history is being tidied up: ask again");
}
Result<std::vector<ports::StoredUsage>> SteadyStore::read_usage(LeaseId after, std::size_t most) {
  GPUROTA_TRY(check_open());
  return store_.read_usage(after, most);
}
Result<std::vector<ports::UsageSum>> SteadyStore::sum_usage_of(uid_t uid, WallTime since,
                                                               WallTime until) {
  GPUROTA_TRY(check_open());
  return store_.sum_usage_of(uid, since, until);
}
Result<std::size_t> SteadyStore::count_usage(uid_t uid) {
  GPUROTA_TRY(check_open());
  return store_.count_usage(uid);
}
Result<ports::MergedUsage> SteadyStore::merge_usage(const ports::UsageMerge& merge) {
  GPUROTA_TRY(check_open());
  GPUROTA_TRY(waits_.catch_up());
  auto merged = store_.merge_usage(merge);
  if (merged && merged->fewer > 0) waits_.on_change();
  return merged;
}
Result<bool> SteadyStore::prune_usage(WallTime before, std::size_t most) {
  GPUROTA_TRY(check_open());
  GPUROTA_TRY(waits_.catch_up());
  auto more = store_.prune_usage(before, most);
  if (more && *more) waits_.on_change();
  return more;
}

}  // namespace gpurota::daemon
