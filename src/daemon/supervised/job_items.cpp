#include "daemon/supervised/job_items.h"

#include "base/log.h"

#include <fmt/format.h>

#include <utility>

namespace gpurota::daemon {
namespace {

// How many of the items did not end well; empty: none.
std::string failed_text(const jobs::Items& items) {
  jobs::ItemCounts counts = items.counts();
  const std::size_t all = items.indices().count();
  const std::size_t failed = all - counts.done;
  if (failed == 0) return {};
  counts.done = 0;
  return fmt::format("{} of {} items did not end well: {}", failed, all, items_text(counts));
}

// The most that one step does, so that a step takes no longer than a call of a client.
constexpr std::size_t kStopsInAStep = 8;
constexpr std::size_t kRetriesInAStep = 64;
constexpr std::size_t kForgetsInAStep = 4;
constexpr Duration kStoreAgain = std::chrono::seconds(1);

bool is_told_to_stop(const jobs::JobState& state) {
  return state.phase == jobs::Phase::kStopping && !state.start_again &&
         state.end_reason == jobs::EndReason::kStopped;
}

bool is_under_way(jobs::Phase phase) {
  return phase == jobs::Phase::kRunning || phase == jobs::Phase::kStopping;
}

}  // namespace

bool is_at_rest(const JobEntry& item) {
  const jobs::Phase phase = item.life.state().phase;
  return is_settled(phase) || phase == jobs::Phase::kWaiting;
}

JobEntry* JobItems::entry(std::uint64_t id) {
  JobEntries& all = array_of(id) == 0 ? parts_.jobs : runs_;
  const auto at = all.find(id);
  return at == all.end() ? nullptr : &at->second;
}

const JobEntry* JobItems::find(const JobEntry& array, std::int64_t index) const {
  const auto at = runs_.find(run_of(array.id, index));
  return at == runs_.end() ? nullptr : &at->second;
}

const JobEntry* JobItems::asking_of(const JobEntry& array) const {
  for (const std::int64_t index : array.items.on()) {
    const JobEntry* const item = find(array, index);
    const bool runs = item && item->life.state().phase == jobs::Phase::kRunning;
    if (runs && item->life.state().asking) return item;
  }
  return nullptr;
}

jobs::ItemCounts JobItems::count(const JobEntry& array) const {
  jobs::ItemCounts counts = array.items.counts();
  if (asking_of(array) == nullptr) return counts;
  --counts.running;
  ++counts.waiting;
  return counts;
}

JobEntry& JobItems::make(JobEntry& array, std::int64_t index) {
  jobs::JobState state = array.items.begin(index);
  if (state.phase == jobs::Phase::kWaiting) state.phase = jobs::Phase::kStopped;
  jobs::JobSpec spec = item_spec(array.spec, index);
  const jobs::Policy policy = parts_.policy_of(spec);
  const std::uint64_t run = run_of(array.id, index);
  JobEntry item{{run, array.uid, array.user, std::move(spec)},
                jobs::Supervision(policy, std::move(state))};
  item.array = array.id;
  item.index = index;
  return runs_.insert_or_assign(run, std::move(item)).first->second;
}

// If an item has ended because its array was stopped, the item waits, and starts again when the
// array continues.
jobs::JobState JobItems::resting_state(const JobEntry& array, jobs::JobState state) const {
  const jobs::Phase phase = array.life.state().phase;
  const bool stops = phase == jobs::Phase::kStopping || phase == jobs::Phase::kStopped;
  if (!stops || state.phase != jobs::Phase::kStopped) return state;
  state.phase = jobs::Phase::kWaiting;
  state.end_detail.clear();
  return state;
}

void JobItems::put_to_rest(std::uint64_t run) {
  const auto item = runs_.extract(run);
  const auto array = parts_.jobs.find(array_of(run));
  if (array == parts_.jobs.end()) return;
  const jobs::JobState& state = item.mapped().life.state();
  // An item that has ended frees what other items may have waited for.
  if (state.phase != jobs::Phase::kWaiting) array->second.put_off.reset();
  array->second.items.rest(index_of(run), resting_state(array->second, state));
  parts_.supervisor.settle(item.mapped());
  take_step_soon(array->second);
  // A removed array is dropped with its last item. Until all items are taken up, the last item is
  // not known.
  if (restored_ && array->second.is_removed()) parts_.settle(array_of(run));
}

bool JobItems::put_off(JobEntry& item) {
  const auto array = parts_.jobs.find(item.array);
  if (array == parts_.jobs.end() || !item.refusal_may_pass || item.refusal.empty()) return false;
  if (!item.life.put_off()) return false;
  log::info("an item of a job waits",
            {{"job", item.spec.name}, {"item", item.index}, {"reason", item.refusal}});
  array->second.put_off = PutOff{item.refusal};
  array->second.put_off->timer = parts_.loop.add_timer(
      parts_.loop.now() + kPutOffPause, ports::Urgency::kHousekeeping, [this, id = item.array] {
        const auto at = parts_.jobs.find(id);
        if (at == parts_.jobs.end()) return;
        const auto over = std::exchange(at->second.put_off, std::nullopt);
        take_step_soon(at->second);
      });
  return true;
}

// Steps have the urgency of clients, so that neither clients nor the array wait long for the other.
void JobItems::take_step_soon(JobEntry& array, Duration pause) {
  if (array.next_step) return;
  array.next_step = parts_.loop.add_timer(parts_.loop.now() + pause, ports::Urgency::kClient,
                                          [this, id = array.id] {
                                            const auto at = parts_.jobs.find(id);
                                            if (at == parts_.jobs.end()) return;
                                            const auto this_step = std::move(at->second.next_step);
                                            take_step(id);
                                          });
}

void JobItems::take_step(std::uint64_t id) {
  JobEntry& array = parts_.jobs.at(id);
  const jobs::Phase phase = array.life.state().phase;
  if (phase == jobs::Phase::kStopping && stop_some(array)) return;
  if (array.life.state().retries_items && !array.is_removed()) return retry_some(array);
  const auto next = array.items.next();
  const bool runs = phase == jobs::Phase::kRunning;
  const bool has_room = array.items.on().size() < static_cast<std::size_t>(array.spec.at_once);
  if (runs && next && has_room && !array.put_off && asking_of(array) == nullptr) {
    JobEntry& item = make(array, *next);
    parts_.carry_out(item, item.life.start(parts_.now()));
    parts_.settle(item.id);
    return take_step_soon(array);
  }
  const bool over = runs ? array.items.is_over() : array.items.on().empty();
  if (!is_under_way(phase) || !over) return;
  parts_.carry_out(array, array.life.on_items_over(parts_.now(), array.items.worst_exit_status(),
                                                   failed_text(array.items)));
  parts_.settle(id);
}

void JobItems::stop(JobEntry& array) {
  // Replace the pending step, which may be waiting until the disk has room.
  array.next_step.reset();
  take_step_soon(array);
}

// False: all running items have been ordered to stop.
bool JobItems::stop_some(JobEntry& array) {
  const std::uint64_t id = array.id;
  const std::string by = array.life.state().end_detail;
  std::vector<std::uint64_t> runs;
  for (const std::int64_t index : array.items.on()) {
    const auto item = runs_.find(run_of(array.id, index));
    if (item == runs_.end() || is_told_to_stop(item->second.life.state())) continue;
    runs.push_back(item->first);
    if (runs.size() == kStopsInAStep) break;
  }
  for (const std::uint64_t run : runs) {
    JobEntry& item = runs_.at(run);
    parts_.carry_out(item, item.life.stop(parts_.now(), by));
    parts_.settle(run);
  }
  // A removed array is dropped with its last item.
  const auto there = parts_.jobs.find(id);
  if (!runs.empty() && there != parts_.jobs.end()) take_step_soon(there->second);
  return !runs.empty();
}

// No item starts before all failed items wait again. After a kill -9 the next daemon begins from
// the first item, and could not tell an item that has failed again from an item that has not been
// retried yet.
void JobItems::retry_some(JobEntry& array) {
  const auto failed = array.items.failed_from(array.retry_from, kRetriesInAStep);
  if (failed.empty()) {
    array.life.set_retries_items(false);
    array.retry_from = 0;
    take_step_soon(array);
    return parts_.settle(array.id);
  }
  std::vector<jobs::JobState> states;
  std::vector<ports::StoredItem> rows;
  for (const std::int64_t index : failed) {
    states.push_back(jobs::to_retry(*array.items.state_of(index)));
    rows.push_back(row_of(index, states.back()));
  }
  if (const auto saved = parts_.supervisor.store()->save_items(array.id, rows, false); !saved) {
    log::warn("cannot store that items start again, trying again",
              {{"job", array.spec.name}, {"error", saved.error().message}});
    return take_step_soon(array, kStoreAgain);
  }
  for (std::size_t i = 0; i < failed.size(); ++i) {
    array.items.rest(failed[i], std::move(states[i]));
  }
  array.retry_from = failed.back() + 1;
  take_step_soon(array);
}

Result<void> JobItems::reset(JobEntry& array) {
  GPUROTA_TRY(parts_.supervisor.store()->save_items(array.id, {}, true));
  array.items.reset();
  array.life.set_retries_items(false);
  return {};
}

ports::StoredItem JobItems::row_of(std::int64_t index, const jobs::JobState& state) const {
  return {index, encode(state), parts_.processes.boot_id()};
}

Result<void> JobItems::store(std::uint64_t run) {
  const auto array = parts_.jobs.find(array_of(run));
  if (array == parts_.jobs.end()) return {};
  const std::int64_t index = index_of(run);
  const JobEntry* const item = find(array->second, index);
  const jobs::JobState* const state =
      item ? &item->life.state() : array->second.items.state_of(index);
  if (state == nullptr) return {};
  return parts_.supervisor.store()->save_items(array->first, {row_of(index, *state)}, false);
}

// Whether the array has to wait for other jobs when it is started again; nothing if the array has
// not ended.
Result<std::optional<bool>> JobItems::start_of(const JobEntry& array) const {
  if (!is_settled(array.life.state().phase)) return std::nullopt;
  GPUROTA_ASSIGN_OR_RETURN(const bool chained, must_wait(parts_.jobs, array.uid, array.spec));
  return std::optional(chained);
}

// Starts the array again if it has ended, because some of its items wait now.
Result<void> JobItems::start_again(JobEntry& array, std::optional<bool> chained) {
  const std::uint64_t id = array.id;
  const std::string name = array.spec.name;
  if (chained) parts_.carry_out(array, array.life.start(parts_.now(), *chained));
  parts_.settle(id);
  return parts_.supervisor.check_stored(id, name);
}

Result<void> JobItems::retry(std::uint64_t id) {
  JobEntry& array = parts_.jobs.at(id);
  if (!array.spec.is_array()) {
    return fail(Code::kInvalid, fmt::format("job {0} is no array: 'gpurota job restart {0}' starts "
                                            "it again",
                                            array.spec.name));
  }
  if (!array.items.has_failed()) {
    return fail(Code::kInvalid, fmt::format("no item of {} has failed: {}", array.spec.name,
                                            items_text(count(array))));
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::optional<bool> chained, start_of(array));
  array.life.set_retries_items(true);
  array.retry_from = 0;
  return start_again(array, chained);
}

Result<void> JobItems::control(std::uint64_t id, std::int64_t index, What what,
                               const std::string& by) {
  JobEntry& array = parts_.jobs.at(id);
  const jobs::Phase phase = array.life.state().phase;
  const std::uint64_t run = run_of(array.id, index);
  if (const auto item = runs_.find(run); item != runs_.end()) {
    jobs::Supervision& life = item->second.life;
    const jobs::Actions actions = what == What::kStop      ? life.stop(parts_.now(), by)
                                  : what == What::kRestart ? life.restart(parts_.now(), by)
                                                           : life.start(parts_.now());
    parts_.carry_out(item->second, actions);
    parts_.settle(run);
    return parts_.supervisor.check_stored(run, array.spec.name);
  }
  const bool waits = array.items.kind(index) == jobs::ItemKind::kWaiting;
  // An item that has ended has nothing to stop, and an item that waits starts anyway.
  if (waits != (what == What::kStop)) return {};
  if (what != What::kStop && phase == jobs::Phase::kStopped) {
    return fail(Code::kInvalid, fmt::format("job {0} is stopped: 'gpurota job start {0}' goes on "
                                            "with its items",
                                            array.spec.name));
  }
  std::optional<bool> chained;
  if (!waits) {
    GPUROTA_ASSIGN_OR_RETURN(chained, start_of(array));
  }
  const jobs::JobState* const known = array.items.state_of(index);
  jobs::JobState state = known ? *known : jobs::JobState();
  state.phase = waits ? jobs::Phase::kCancelled : jobs::Phase::kWaiting;
  state.end_detail = waits ? by : "";
  GPUROTA_TRY(parts_.supervisor.store()->save_items(array.id, {row_of(index, state)}, false));
  array.items.rest(index, std::move(state));
  return start_again(array, chained);
}

// Removes the files of some runs at a time, as each run has several files and the loop serves
// nobody else meanwhile. If the daemon is killed, the next one removes the rest.
void JobItems::forget_some() {
  forget_timer_.reset();
  for (std::size_t i = 0; i < kForgetsInAStep && !forgotten_.empty(); ++i) {
    if (const auto gone = parts_.supervisor.files().forget(forgotten_.back()); !gone) {
      log::warn("cannot remove what an item left", {{"error", gone.error().message}});
    }
    forgotten_.pop_back();
  }
  if (forgotten_.empty()) return;
  forget_timer_ = parts_.loop.add_timer(parts_.loop.now(), ports::Urgency::kHousekeeping,
                                        [this] { forget_some(); });
}

void JobItems::forget(const JobEntry& array) {
  for (const std::int64_t index : array.items.known()) {
    forgotten_.push_back(run_of(array.id, index));
  }
  if (!forget_timer_) forget_some();
}

Result<void> JobItems::take_up(JobEntry& array, const ports::StoredItem& stored) {
  auto state = jobs::decode_state(stored.state);
  if (!state || !array.items.indices().has(stored.index)) {
    log::error("a stored item of a job cannot be read, ignoring it",
               {{"id", array.id}, {"item", stored.index}});
    return {};
  }
  const bool is_on = is_under_way(state->phase) || state->phase == jobs::Phase::kBackingOff;
  array.items.rest(stored.index, std::move(*state));
  if (!is_on) return {};
  JobEntry& item = make(array, stored.index);
  item.adopted = true;
  const bool same_boot = !stored.boot_id.empty() && stored.boot_id == parts_.processes.boot_id();
  if (same_boot) return parts_.take_up_run(item);
  // After a reboot the item waits, and starts again in its turn.
  (void)item.life.on_boot(parts_.now());
  put_to_rest(item.id);
  return {};
}

void JobItems::take_spec(JobEntry& array) {
  for (const std::int64_t index : array.items.on()) {
    const auto item = runs_.find(run_of(array.id, index));
    if (item == runs_.end()) continue;
    item->second.spec = item_spec(array.spec, index);
    item->second.life.set_policy(parts_.policy_of(item->second.spec));
  }
  array.put_off.reset();
  if (array.spec.is_array()) take_step_soon(array);
}

}  // namespace gpurota::daemon
