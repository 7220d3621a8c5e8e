#include "daemon/history/steady_store.h"

#include "base/log.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpurota::daemon {

using store::SqliteStore;

SteadyStore::SteadyStore(ports::EventLoop& loop, SqliteStore& store)
    : loop_(loop), store_(store), worker_(loop, "store") {}

SteadyStore::~SteadyStore() {
  if (running_.valid()) running_.wait();
  settling_ = false;
  if (auto written = catch_up(); !written) {
    log::error("the last changes are not stored", {{"error", written.error().message}});
  }
}

template <class Call, class... Arguments>
Result<void> SteadyStore::change(Call call, const Arguments&... arguments) {
  if (settling_) {
    kept_.push_back([this, call, arguments...] { return (store_.*call)(arguments...); });
    on_change();
    return {};
  }
  GPUROTA_TRY(catch_up());
  GPUROTA_TRY((store_.*call)(arguments...));
  on_change();
  return {};
}

// What is given while the database is not ours is what it will give when it is asked afterwards.
template <class Id, class... Arguments>
Result<Id> SteadyStore::next(std::uint64_t& last, Result<Id> (SqliteStore::*call)(Arguments...),
                             Arguments... arguments) {
  if (settling_) {
    kept_.push_back([this, call, arguments...]() -> Result<void> {
      GPUROTA_TRY((store_.*call)(arguments...));
      return {};
    });
    on_change();
    return Id{++last};
  }
  GPUROTA_TRY(catch_up());
  auto id = (store_.*call)(arguments...);
  if (id) on_change();
  return id;
}

void SteadyStore::on_change() {
  ++made_;
  begin_soon();
}

Result<void> SteadyStore::catch_up() {
  while (!kept_.empty()) {
    GPUROTA_TRY(kept_.front()());
    kept_.pop_front();
  }
  return {};
}

void SteadyStore::settle() {
  wants_settling_ = true;
  begin_soon();
}

// Not at once: what is changed in the same call is in the same wait.
void SteadyStore::begin_soon() {
  if (posted_ || running_.valid()) return;
  posted_ = true;
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    posted_ = false;
    begin();
  });
}

void SteadyStore::begin() {
  if (running_.valid()) return;
  if (auto written = catch_up(); !written) return tell(made_, written.error());
  if (std::exchange(wants_settling_, false) && store_.needs_settling()) {
    const auto numbers = store_.numbers();
    if (numbers) {
      numbers_ = *numbers;
      return run(true);
    }
  }
  if (told_ < made_) run(false);
}

void SteadyStore::run(bool settle) {
  settling_ = settle;
  const auto over = std::make_shared<std::promise<void>>();
  running_ = over->get_future().share();
  worker_.run(
      [store = &store_, settle, over] {
        auto done = settle ? store->settle() : store->sync();
        over->set_value();
        return done;
      },
      [this, settle, upto = made_](const Result<void>& done) { finish(settle, upto, done); });
}

void SteadyStore::finish(bool settled, std::uint64_t upto, const Result<void>& done) {
  running_ = {};
  settling_ = false;
  if (settled) (void)catch_up();  // what cannot be written now begin() tells of
  if (settled && !done) {
    // The daemon tries to write by itself, and says what is wrong if it cannot.
    log::debug("the state cannot be settled now, trying again", {{"error", done.error().message}});
    tell(told_, std::nullopt);  // it is open again
  } else if (!done) {
    // Nobody knows what of the log is on the disk: it is brought into the database as soon as that can be.
    wants_settling_ = true;
    log::error("changes are stored, but the disk may not have them",
               {{"error", done.error().message}});
    tell(upto, done.error());
  } else {
    tell(upto, std::nullopt);
  }
  if (told_ < made_) begin_soon();
}

void SteadyStore::tell(std::uint64_t upto, std::optional<Error> error) {
  told_ = std::max(told_, upto);
  if (listener_) listener_({upto, std::move(error)});
}

Result<void> SteadyStore::save_lease(const ports::StoredLease& lease) {
  return change(&SqliteStore::save_lease, lease);
}
Result<void> SteadyStore::remove_lease(LeaseId id) {
  return change(&SqliteStore::remove_lease, id);
}
Result<LeaseId> SteadyStore::next_lease_id() {
  return next(numbers_.lease, &SqliteStore::next_lease_id);
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
  return next(numbers_.request, &SqliteStore::next_request_id);
}
Result<void> SteadyStore::grant_request(RequestId id, const ports::StoredLease& lease) {
  return change(&SqliteStore::grant_request, id, lease);
}
Result<void> SteadyStore::save_gpu(const ports::StoredGpuState& gpu) {
  return change(&SqliteStore::save_gpu, gpu);
}

Result<void> SteadyStore::save_job(const ports::StoredJob& job) {
  return change(&SqliteStore::save_job, job);
}
Result<void> SteadyStore::save_jobs(const std::vector<ports::StoredJob>& jobs) {
  return change(&SqliteStore::save_jobs, jobs);
}
Result<void> SteadyStore::save_filler(const ports::StoredFiller& filler) {
  return change(&SqliteStore::save_filler, filler);
}
Result<void> SteadyStore::remove_program(ports::ProgramKind kind, std::uint64_t id) {
  return change(&SqliteStore::remove_program, kind, id);
}
Result<std::uint64_t> SteadyStore::next_program_id(ports::ProgramKind kind) {
  std::uint64_t& last = kind == ports::ProgramKind::kJob ? numbers_.job : numbers_.filler;
  return next(last, &SqliteStore::next_program_id, kind);
}

Result<void> SteadyStore::save(const ports::HistoryBatch& batch) {
  return change(&SqliteStore::save, batch);
}
Result<std::vector<ports::StoredUsage>> SteadyStore::load_open_usage() {
  return store_.load_open_usage();
}
Result<void> SteadyStore::check_open() const {
  if (!settling_) return {};
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
  GPUROTA_TRY(catch_up());
  auto merged = store_.merge_usage(merge);
  if (merged && merged->fewer > 0) on_change();
  return merged;
}
Result<bool> SteadyStore::prune_usage(WallTime before, std::size_t most) {
  GPUROTA_TRY(check_open());
  GPUROTA_TRY(catch_up());
  auto more = store_.prune_usage(before, most);
  if (more && *more) on_change();
  return more;
}

}  // namespace gpurota::daemon
